"""The README's example gives what the README says."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.language.binder import bind_script
from headwater.runtime.replay import replay

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for kind, text in fenced if kind == language]


def test_the_query_gives_the_history_shown(tmp_path: Path):
    script = bind_script(next(text for text in blocks("sql") if "offers" in text))
    shown, expected = (text for text in blocks("") if text.startswith('{"stream"'))
    recording = tmp_path / "events.jsonl"
    recording.write_text(shown)
    for batch in (None, 1):
        assert list(replay(script, recording, batch=batch, history=True)) == expected.splitlines()

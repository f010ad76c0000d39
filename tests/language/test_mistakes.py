"""Mistakes and what is said about them: whole messages, in ``mistakes.test``; words of other systems in the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.errors import SqlError
from headwater.language.binder import bind_script

STREAMS = """\
CREATE STREAM s (x INT, y STRING, d DOUBLE, t TIMESTAMP, b BOOLEAN, a ARRAY<INT>, r STRUCT<f: INT>);
CREATE STREAM u (x INT NOT NULL, z STRING);
"""
TIMED = "CREATE STREAM w (x INT, y STRING, t TIMESTAMP) ORDERED BY t;"


def with_streams(script: str) -> str:
    """The script after its streams; those that read from the timed one have it on the same lines as the others."""
    timed = re.search(r"(TABLE|FROM) w\b", script) is not None
    return (STREAMS[:-1] + TIMED + "\n" if timed else STREAMS) + script


def mistakes() -> list[tuple[str, str]]:
    """Pairs of a script and its message; ``----`` stands between them, two empty lines after them."""
    text = "\n\n".join(
        (Path(__file__).parent / name).read_text() for name in ("mistakes.test", "foreign_mistakes.test")
    )
    pairs = [case.partition("\n----\n") for case in text.split("\n\n\n") if case.strip()]
    return [(script.lstrip("\n"), message.rstrip("\n")) for script, _, message in pairs]


@pytest.mark.parametrize(("script", "message"), mistakes(), ids=[script for script, _ in mistakes()])
def test_a_mistake_is_explained(script: str, message: str):
    with pytest.raises(SqlError) as caught:
        bind_script(with_streams(script))
    assert str(caught.value) == message


def test_every_mistake_has_a_place():
    for script, _ in mistakes():
        with pytest.raises(SqlError) as caught:
            bind_script(with_streams(script))
        assert caught.value.line > 0, script

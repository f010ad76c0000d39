"""`headwater demo`: the auction recording that ships with the checkout, one table a query."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headwater.errors import InputError
from headwater.runtime.replay import load_script, replay

_AUCTION = Path(__file__).resolve().parents[3] / "examples" / "auction"


def run(console: Console) -> None:
    """Replay the auction tick by tick and show what each query answered when."""
    if not _AUCTION.is_dir():
        raise InputError(
            "NO_EXAMPLES",
            "the demo needs the examples of a checkout",
            hint="Clone the repository and run bin/headwater demo there.",
        )
    script = load_script(_AUCTION / "queries.sql")
    lines = map(json.loads, replay(script, _AUCTION / "events.jsonl", batch=1, history=True))
    for name, answers in groupby(lines, key=lambda line: line["stream"]):
        rows = list(answers)
        table = Table(title=name, title_justify="left")
        for heading in ("from", "until", *rows[0]["row"]):
            table.add_column(heading, justify="right" if heading in ("from", "until") else "left")
        for line in rows:
            until = "for ever" if line["end"] is None else str(line["end"])
            table.add_row(str(line["start"]), until, *(str(value) for value in line["row"].values()))
        console.print(table)

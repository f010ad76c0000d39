"""`headwater bench time`: all simulations, printed whoever looks better."""

from __future__ import annotations

from rich.console import Console

from benchmarks.time import catch_up, learning, silence, sparse
from benchmarks.time.report import Finding, as_markdown, as_tables


def simulate() -> list[Finding]:
    """In the order in which they are shown."""
    return [silence.run(), sparse.run(), learning.run(), catch_up.run()]


def run(out: Console, *, markdown: bool, command: str) -> None:
    """What is found goes to ``out``."""
    findings = simulate()
    if markdown:
        out.print(as_markdown(findings, command), markup=False, highlight=False, soft_wrap=True)
    else:
        out.print(as_tables(findings))

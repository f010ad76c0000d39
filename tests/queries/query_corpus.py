"""The corpus: ``*.test`` files of streams, input, queries with the histories that they give, mistakes with their messages.

    # What the file is about.

    [streams]
    CREATE STREAM bid (item INT, price DOUBLE, bidder STRING);

    [input]
    bid  @3      1007  12    p1          valid at [3, 4)
    bid  5-9     1020  6.5   NULL        valid at [5, 9)
    bid  5-9>7   1020  6.5   NULL        ends at 7 after all; 5-9>5 takes it away
    bid  8-      1007  15    "p 3"       valid for ever
    bid  ~9                              nothing before 9 changes any more

    [highest_price]
    SELECT MAX(price) AS price FROM bid WINDOW(RANGE 10)
    ----
    start  end  count  price
    3      15   1      12.0

    [error_no_such_column]
    SELECT prize FROM bid
    ----
    UNKNOWN_COLUMN: column "prize" does not exist

``[streams]`` and ``[input]`` hold for what follows, until the next of their kind. With ``[input in minutes]`` instants are
minutes, an instant in between is shown as ``3+1`` or ``10-1`` (a microsecond after or before). Values are words or JSON.
A script without a SELECT has one table for each stream that it defines, under its name and a colon. An expected block
ends at an empty line. A ``notice_…`` case has the notices of its script, a ``shows_…`` case what its last statement says.

Comments in the SQL may tell the judges something: ``-- duckdb: …`` is the query in words that mean the same to DuckDB,
``-- judged: …`` says why no judge can judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from headwater.model.time import INFINITY, MICROSECONDS

FOLDER = Path(__file__).parent
SEPARATOR = "----"
KINDS = ("error", "notice", "shows")

_SECTION = re.compile(r"^\[([a-z][a-z0-9_]*|input in [a-z]+)\]$")
_INTERVAL = re.compile(r"^(?:@(?P<at>\d+)|(?P<start>\d+)-(?P<end>\d+)?(?P<adjust>>(?P<new>\d+)?)?|~(?P<stable>\d+)?)$")
_WORD = re.compile(r"\S+")
_BARE = re.compile(r"[^\s\"\[\]{}#][^\s]*")


@frozen
class Recording:
    """The input of some cases: lines as the file has them."""

    lines: tuple[str, ...] = ()
    unit: str = ""
    """``minute`` where instants are minutes; empty: plain instants."""

    @property
    def scale(self) -> int:
        return MICROSECONDS[self.unit.upper()] if self.unit else 1


@frozen
class Case:
    """One query, mistake or notice, and what it must give."""

    path: Path
    name: str
    line: int
    sql: str
    expected: str
    streams: str = field(repr=False)
    recording: Recording = field(repr=False)

    @property
    def kind(self) -> str:
        first = self.name.partition("_")[0]
        return first if first in KINDS else "query"

    def notes(self, key: str) -> str:
        """What a comment ``-- key: …`` of the query says."""
        found = re.search(rf"^--\s*{key}:\s*(.*)$", self.sql, re.MULTILINE)
        return found.group(1) if found else ""


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.test"))


def read(path: Path) -> list[Case]:
    """The cases of a file."""
    cases, streams, recording = [], "", Recording()
    for name, line, lines in _sections(path.read_text(encoding="utf-8")):
        if name == "streams":
            streams = "\n".join(lines)
        elif name.startswith("input"):
            unit = name.removeprefix("input").removeprefix(" in ").removesuffix("s")
            recording = Recording(tuple(text for text in lines if text.strip() and not text.startswith("#")), unit)
        else:
            at = lines.index(SEPARATOR) if SEPARATOR in lines else len(lines)
            sql = "\n".join(lines[:at]).strip("\n")
            cases.append(Case(path, name, line, sql, "\n".join(_block(lines[at + 1 :])), streams, recording))
    return cases


def _sections(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """(name, number of its line, lines) of every section."""
    name, start, lines = "", 0, []
    for number, line in enumerate(text.split("\n"), 1):
        if found := _SECTION.match(line):
            if name:
                yield name, start, lines
            name, start, lines = found.group(1), number, []
        else:
            lines.append(line.rstrip())
    if name:
        yield name, start, lines


def _block(lines: Sequence[str]) -> list[str]:
    """The lines up to the first empty one."""
    return list(lines[: lines.index("")]) if "" in lines else list(lines)


def rewritten(path: Path, answers: dict[str, str]) -> str:
    """The text of the file with other expected blocks; a case that has none yet gets one."""
    result: list[str] = []
    name, skipping, answered = "", False, True
    for line in [*path.read_text(encoding="utf-8").rstrip("\n").split("\n"), "[end]"]:
        found = _SECTION.match(line)
        if found and not answered and name in answers:
            while result and not result[-1]:
                result.pop()
            result += [SEPARATOR, *answers[name].split("\n"), ""]
        if found:
            name, skipping, answered = found.group(1), False, False
        elif line == SEPARATOR and name in answers:
            result += [SEPARATOR, *answers[name].split("\n")]
            skipping = answered = True
        elif not line:
            skipping = False
        if not skipping:
            result.append(line)
    return "\n".join(result[:-1]).rstrip("\n") + "\n"


# -- input ------------------------------------------------------------------------------------------------------------


def elements(recording: Recording, columns: dict[str, Sequence[tuple[str, bool]]]) -> Iterator[dict[str, Any]]:
    """The lines of a recording as ``headwater replay`` reads them; columns are (name, whether it is a STRING)."""
    for line in recording.lines:
        stream, *rest = words(line)
        if stream == "tick":
            yield {"kind": "tick"}
            continue
        when = _INTERVAL.match(rest[0]) if rest else None
        if when is None or stream not in columns:
            raise ValueError(f"cannot read the input line: {line}")
        yield {"stream": stream, **_element(when, recording.scale), **_row(line, rest[1:], columns[stream], when)}


def _element(when: re.Match[str], scale: int) -> dict[str, Any]:
    def instant(name: str) -> int | None:
        return None if when[name] is None else int(when[name]) * scale

    if when.group().startswith("~"):
        return {"kind": "stable", "at": instant("stable")}
    if when["at"] is not None:
        return {"kind": "insert", "at": instant("at")}
    interval = {"start": instant("start"), "end": instant("end")}
    if when["adjust"]:
        return {"kind": "adjust", **interval, "new_end": instant("new")}
    return {"kind": "insert", **interval}


def _row(line: str, cells: Sequence[str], columns: Sequence[tuple[str, bool]], when: re.Match[str]) -> dict[str, Any]:
    if when.group().startswith("~"):
        return {}
    if len(cells) != len(columns):
        raise ValueError(f"{len(columns)} values are needed: {line}")
    pairs = zip(columns, cells, strict=True)
    return {"row": {name: _value(cell, is_string) for (name, is_string), cell in pairs}}


def _value(cell: str, is_string: bool) -> Any:
    if cell == "NULL":
        return None
    if is_string and not cell.startswith('"'):
        return cell
    try:
        return json.loads(cell, parse_constant=str)  # NaN and the infinities are strings in a recording
    except json.JSONDecodeError:
        return cell


def words(line: str) -> list[str]:
    """The cells of a line: words, or JSON strings, lists and objects."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        if line[at] == "#":
            break
        if line[at] in '"[{':
            _, end = decoder.raw_decode(line, at)
        else:
            word = _WORD.match(line, at)
            assert word is not None
            end = word.end()
        found.append(line[at:end])
        at = end
    return found


# -- answers ----------------------------------------------------------------------------------------------------------


@frozen
class Table:
    """The history of one query: columns, and (start, end, count, values) in canonical order."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[int, int, int, tuple[Any, ...]], ...]

    def text(self, unit: int = 1) -> str:
        """Aligned lines, the first one with the names."""
        lines = [["start", "end", "count", *map(_cell, self.columns)]]
        for start, end, count, values in self.rows:
            lines.append([_instant(start, unit), _instant(end, unit), str(count), *map(_cell, values)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def answer(tables: Sequence[Table], unit: int = 1) -> str:
    """The expected block for these tables."""
    if len(tables) == 1:
        return tables[0].text(unit)
    return "\n".join(f"{table.name}:\n{table.text(unit)}" for table in tables)


def _instant(instant: int, unit: int) -> str:
    """``3``, or in units ``3+1`` and ``10-1``."""
    if instant == INFINITY:
        return "inf"
    whole, rest = divmod(instant, unit)
    if not rest:
        return str(whole)
    return f"{whole}+{rest}" if rest <= unit // 2 else f"{whole + 1}-{unit - rest}"


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str) and value != "NULL" and _BARE.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

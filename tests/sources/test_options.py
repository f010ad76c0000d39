"""Every option of every source does something: the same data is read otherwise with it than without."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.language.arguments import Arguments, Parameter
from headwater.language.catalog import Connector, Stream
from headwater.model.schema import Schema
from headwater.sources import connectors

PLAIN = "(x INT, at TIMESTAMP)"
ROWS = [{"x": i, "at": f"2026-01-01 00:00:0{i}"} for i in range(4)]
ELEMENTS = [
    {"_op": "insert", "x": 1, "_start": "2026-01-01 00:00:00", "_end": None, "_new_end": None},
    {"_op": "adjust", "x": 1, "_start": "2026-01-01 00:00:00", "_end": None, "_new_end": "2026-01-01 00:00:05"},
]


def as_text(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


# For every option: what is declared, what is read, and the option. Where several options only make sense together, the
# first of the pair is what is given anyway.
JSON: dict[str, tuple[str, str, str, str]] = {
    "malformed": (PLAIN, as_text([*ROWS, {"x": "a"}]), "", "malformed => 'divert'"),
    "changes": ("(x INT)", as_text(ELEMENTS), "", "changes => 'headwater'"),
    "ordered": ("(x INT)", as_text(ELEMENTS[1:]), "changes => 'headwater'", "ordered => false"),
    "checked": ("(x INT)", as_text(ELEMENTS[1:]), "changes => 'headwater'", "checked => false"),
    "counted": (
        "(x INT)",
        as_text([*ELEMENTS[:1], {"_op": "cti", "_start": "2026-01-01", "_end": "2026-01-02", "_count": 1}]),
        "changes => 'headwater'",
        "counted => true",
    ),
    "instants": (
        "(x INT)",
        as_text([{"_op": "insert", "x": 1, "_start": 5, "_end": 9, "_new_end": None}]),
        "changes => 'headwater'",
        "instants => 'numbers'",
    ),
    "follow": (PLAIN, as_text(ROWS), "", "follow => true"),
    "timestamp_format": (PLAIN, as_text([{"x": 1, "at": "05.01.2026"}]), "", "timestamp_format => '%d.%m.%Y'"),
}
COMMA, LINES = "x,at\n1,2026-01-01 00:00:01\n2,2026-01-01 00:00:02\n", PLAIN.replace("x INT", "x STRING")
CSV = {name: JSON[name] for name in ("malformed", "follow", "timestamp_format")} | {
    "malformed": (PLAIN, f"{COMMA}a,b\n", "", "malformed => 'divert'"),
    "follow": (PLAIN, COMMA, "", "follow => true"),
    "timestamp_format": (PLAIN, "x,at\n1,05.01.2026\n", "", "timestamp_format => '%d.%m.%Y'"),
    "header": (LINES, COMMA, "", "header => false, malformed => 'divert'"),
    "delimiter": (PLAIN, COMMA.replace(",", ";"), "", "delimiter => ';'"),
    "null": (PLAIN, f"{COMMA}-,2026-01-01 00:00:03\n", "", "null => '-'"),
    "multiline": (LINES, f'{COMMA}"a\nb",2026-01-01 00:00:03\n', "", "multiline => true"),
    "changes": ("(x INT)", "_op,x,_start,_end,_new_end\ninsert,1,2026-01-01,,\n", "", "changes => 'headwater'"),
}
"""CSV and Parquet have the options of changes in common with JSON: they are those of the declaration."""
DECLARED = ("ordered", "checked", "counted", "instants")


class Seen(dict[str, Any]):
    """How a stream was read."""


def read(declared: str, source: str, *, pushed: Any = None) -> Seen:
    ordered = " ORDERED BY at IN ORDER" if " at " in declared else ""
    try:
        with hw.connect(runner="inprocess") as engine:
            engine.sql(f"CREATE STREAM s {declared} SOURCE {source}{ordered}")
            run = engine.sql("SELECT * FROM s").start()
            if pushed is not None:
                engine.push("s", pushed)
            finite = engine.finite
            engine.run_to_end(end_streams=False)
            now = engine.progress()
            told = Seen(finite=finite, ticks=now.tick, rows=now.rows, bad=now.bad_rows, late=now.late_rows)
            told |= {"frontier": run.frontier}
            engine.run_to_end()
            return Seen(told | {"found": sorted(map(str, run.sink.table().to_pylist()))})  # type: ignore[attr-defined]
    except HeadwaterError as problem:
        return Seen(error=problem.code)


def parameters(function: str) -> set[str]:
    """All that a source function declares."""
    found: list[Parameter] = []

    class Asked(Exception):  # noqa: N818
        pass

    def bound(self: Arguments, its: Any) -> Any:
        found.extend(its)
        raise Asked

    schema = Schema.of(timestamp="TIMESTAMP", value="BIGINT")
    stream = Stream("s", schema, Connector(function))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arguments, "bound", bound)
        with pytest.raises(Asked):
            connectors.make_source(stream, base_folder=Path())
    return {parameter.name for parameter in found}


def cases() -> Iterator[Any]:
    for function, table in (("json", JSON), ("csv", CSV)):
        for name, case in table.items():
            yield pytest.param(function, *case, id=f"{function}-{name}")


@pytest.mark.parametrize(("function", "declared", "text", "given", "option"), list(cases()))
def test_an_option_of_text_files_does_something(
    function: str, declared: str, text: str, given: str, option: str, tmp_path: Path
):
    (tmp_path / f"a.{function}").write_text(text)
    path = f"'{tmp_path}/a.{function}'"
    plain, more = (", ".join(filter(None, [path, *its])) for its in ([given], [given, option]))
    assert read(declared, f"{function}({plain})") != read(declared, f"{function}({more})")


def put(folder: Path, function: str, name: str, number: int, *, age: int = 0) -> None:
    at, path = f"2026-01-01 00:00:0{number}", folder / f"{name}.{function}"
    if function == "parquet":
        pq.write_table(
            pa.table({"x": pa.array([number], pa.int32()), "at": pa.array([number], pa.timestamp("us"))}), path
        )
    else:
        path.write_text(f"x,at\n{number},{at}\n" if function == "csv" else as_text([{"x": number, "at": at}]))
    os.utime(path, (1_767_225_600 - age,) * 2)


@pytest.mark.parametrize("function", ["csv", "json", "parquet"])
def test_rows_per_tick_makes_more_ticks(function: str, tmp_path: Path):
    for number in range(3):
        put(tmp_path, function, str(number), number)
    ticks = [read(PLAIN, f"{function}('{tmp_path}'{more})")["ticks"] for more in ("", ", rows_per_tick => 1")]
    assert ticks == [1, 3]


@pytest.mark.parametrize("function", ["csv", "json", "parquet"])
@pytest.mark.parametrize(("more", "rows"), [("", 2), (", max_age => '1 second'", 1)])
def test_max_age_leaves_out_old_files_that_turn_up_late(function: str, more: str, rows: int, tmp_path: Path):
    with hw.connect(runner="inprocess") as engine:
        engine.sql(f"CREATE STREAM s {PLAIN} SOURCE {function}('{tmp_path}'{more}) ORDERED BY at DISORDER 1 DAY")
        engine.sql("SELECT * FROM s").start()
        put(tmp_path, function, "new", 5)
        engine.run_to_end(end_streams=False)
        put(tmp_path, function, "old", 4, age=100)
        engine.run_to_end(end_streams=False)
        assert engine.progress().rows == rows


def test_no_option_of_text_files_is_left_out():
    common = {"path", "rows_per_tick", "max_age", *DECLARED}
    assert parameters("json") == {*JSON, *common}
    assert parameters("csv") == {*CSV, *common}
    assert parameters("parquet") == {"path", "malformed", "changes", *DECLARED, "rows_per_tick", "follow", "max_age"}


def test_the_options_of_parquet_do_something(tmp_path: Path):
    table = pa.table({"x": pa.array([1, 2], pa.int32()), "at": pa.array([1, 2], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    path = f"'{tmp_path}/a.parquet'"
    assert read(PLAIN, f"parquet({path})") != read(PLAIN, f"parquet({path}, follow => true)")
    (tmp_path / "bad.parquet").write_text("no parquet")
    path = f"'{tmp_path}/bad.parquet'"
    assert read(PLAIN, f"parquet({path})") != read(PLAIN, f"parquet({path}, malformed => 'divert')")


# -- the others -------------------------------------------------------------------------------------------------------

NEXMARK = "nexmark('bid', events => 500, paced => false, rows_per_tick => 50"


def nexmark(more: str = "", source: str = NEXMARK) -> Seen:
    declared = "(auction BIGINT, price BIGINT, ts TIMESTAMP)"
    try:
        with hw.connect(runner="inprocess") as engine:
            engine.sql(f"CREATE STREAM s {declared} SOURCE {source}{more}) ORDERED BY ts IN ORDER")
            run = engine.sql("SELECT * FROM s").start()
            finite = engine.finite
            engine.run_to_end()
            table = run.sink.table()  # type: ignore[attr-defined]
            now = engine.progress()
            return Seen(ticks=now.tick, late=now.late_rows, finite=finite, rows=sorted(map(str, table.to_pylist())))
    except HeadwaterError as problem:
        return Seen(error=problem.code)


@pytest.mark.parametrize(
    "option", ["rate => 77", "seed => 5", "disorder => '2 seconds'", "start => '2020-01-01 00:00:00'"]
)
def test_the_options_of_nexmark_do_something(option: str):
    assert nexmark(f", {option}") != nexmark()


def test_no_option_of_the_others_is_left_out():
    """The rest say where rows come from, how many there are, and how fast: other tests would fail without them."""
    assert parameters("nexmark") == {
        *("kind", "rate", "events", "seed", "disorder", "start", "paced", "since", "rows_per_tick")
    }
    assert parameters("rate") == {"rows_per_second", "rows", "rows_per_tick"}
    assert parameters("socket") == {"host", "port", "format", "delimiter", "malformed"}
    assert parameters("memory") == {"folder", "malformed", "changes", *DECLARED}
    assert parameters("push") == {"malformed", "changes", *DECLARED}


@pytest.mark.parametrize("name", ["changes", "ordered", "checked", "instants"])
def test_what_is_pushed_is_taken_as_declared(name: str):
    declared, text, given, option = JSON[name]
    rows = [json.loads(line) for line in text.splitlines()]
    plain, more = (", ".join(filter(None, its)) for its in ([given], [given, option]))
    assert read(declared, f"push({plain})", pushed=rows) != read(declared, f"push({more})", pushed=rows)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("nexmark('bid', rate => 99999999999999999999)", "from 1 to 1000000000"),
        ("rate(0)", "from 1 to 1000000000"),
        ("rate(rows => 99999999999999999999)", "from 1 to 1000000000000000"),
        ("socket('localhost', 70000)", "from 1 to 65535"),
    ],
)
def test_numbers_out_of_range_are_refused(source: str, wrong: str):
    with hw.connect(runner="inprocess") as engine, pytest.raises(HeadwaterError, match="WRONG_ARGUMENT") as told:
        engine.sql(f"CREATE STREAM s (timestamp TIMESTAMP, value BIGINT) SOURCE {source} ORDERED BY timestamp")
    assert wrong in told.value.message


@pytest.mark.parametrize("pattern", ["", "%", "%Q", "dd.MM.yyyy", "%d.%m.%Y|", "%Y|yyyy"])
@pytest.mark.parametrize("function", ["csv", "json"])
def test_a_pattern_that_is_none_is_refused_when_it_is_declared(function: str, pattern: str, tmp_path: Path):
    with hw.connect(runner="inprocess") as engine, pytest.raises(HeadwaterError, match="WRONG_ARGUMENT") as told:
        engine.sql(f"CREATE STREAM s {PLAIN} SOURCE {function}('{tmp_path}', timestamp_format => '{pattern}')")
    assert told.value.message.endswith(
        f"must be patterns such as '%d.%m.%Y %H:%M', with bars between them, not {pattern!r}"
    )

"""``headwater replay``: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app

PASS = "CREATE STREAM s (x STRING); SELECT * FROM s"
COUNT = "CREATE STREAM s (x STRING); SELECT x, COUNT(*) AS n FROM s GROUP BY x"


def insert(x: object, start: int, end: int | None, stream: str = "s") -> dict:
    return {"stream": stream, "kind": "insert", "start": start, "end": end, "row": {"x": x}}


def adjust(x: object, start: int, end: int | None, new_end: int | None) -> dict:
    return {"stream": "s", "kind": "adjust", "start": start, "end": end, "new_end": new_end, "row": {"x": x}}


def stable(at: int | None, stream: str = "s") -> dict:
    return {"stream": stream, "kind": "stable", "at": at}


TICK = {"kind": "tick"}


def renamed(lines: list[dict]) -> list[dict]:
    return [{**line, "stream": "query"} for line in lines]


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_elements_pass_and_the_end_is_stable(replay: Callable):
    outcome = replay(PASS, [insert("c", 1, 8), {"stream": "s", "kind": "insert", "at": 5, "row": {"x": "d"}}])
    assert outcome.status == 0
    assert outcome.err == ""
    assert outcome.out == (
        '{"stream":"query","kind":"insert","start":1,"end":8,"row":{"x":"c"}}\n'
        '{"stream":"query","kind":"insert","start":5,"end":6,"row":{"x":"d"}}\n'
        '{"stream":"query","kind":"stable","at":null}\n'
    )


def test_changes_of_an_end_are_printed_as_adjusts(replay: Callable):
    lines = [
        *(insert("a", 1, None), insert("a", 1, None), insert("b", 2, 5), TICK),
        *(adjust("a", 1, None, 4), adjust("b", 2, 5, 2), insert("c", 7, 9), TICK, stable(7), TICK),
    ]
    outcome = replay(PASS, lines, "--open", "--consistency", "middle")
    assert outcome.lines == renamed(
        [
            *(insert("a", 1, None), insert("a", 1, None), insert("b", 2, 5)),
            *(adjust("a", 1, None, 4), adjust("b", 2, 5, 2), insert("c", 7, 9), stable(7)),
        ]
    )


def test_rows_with_both_ends_or_as_soon_as_they_begin(replay: Callable):
    lines = [insert("a", 1, 9), insert("b", 2, 3), TICK, stable(5), TICK, insert("c", 9, 12), stable(20)]
    closed = [insert("b", 2, 3), stable(1), insert("a", 1, 9), insert("c", 9, 12), stable(20)]
    known = [
        insert("a", 1, None),
        insert("b", 2, 3),
        stable(5),
        adjust("a", 1, None, 9),
        insert("c", 9, 12),
        stable(20),
    ]
    distinct = "CREATE STREAM s (x STRING); SELECT DISTINCT x FROM s"
    assert replay(distinct, lines, "--open").lines == renamed(closed)
    assert replay(distinct, lines, "--open", "--emit", "start").lines == renamed(known)
    assert replay(f"{distinct} EMIT ON START", lines, "--open").lines == renamed(known)
    assert replay(f"{distinct} EMIT ON START", lines, "--open", "--emit", "close").lines == renamed(closed)
    assert replay(f"{distinct} EMIT ON START", lines, "--history").out == replay(distinct, lines, "--history").out


def test_elements_of_a_tick_are_sorted(replay: Callable):
    rows = [insert("b", 3, 9), insert("b", 3, 5), insert("z", 1, 9), insert("a", 3, 5)]
    outcome = replay(PASS, rows, "--open", "--consistency", "middle")
    assert outcome.lines == renamed([insert("z", 1, 9), insert("a", 3, 5), insert("b", 3, 5), insert("b", 3, 9)])


def test_what_cancels_within_a_tick_is_not_seen(replay: Callable):
    lines = [insert("a", 1, 5), adjust("a", 1, 5, 1), insert("b", 2, 3)]
    assert replay(PASS, lines).lines == renamed([insert("b", 2, 3), stable(None)])


def test_an_open_recording_ends_at_its_last_stable_point(replay: Callable):
    outcome = replay(PASS, [insert("a", 1, 5), insert("b", 7, 9), stable(6)], "--open")
    assert outcome.lines == renamed([insert("a", 1, 5), stable(6)])


def test_a_recording_may_end_itself(replay: Callable):
    assert replay(PASS, [insert("a", 1, 5), stable(None)], "--open").lines == renamed([insert("a", 1, 5), stable(None)])


def test_an_empty_recording_is_a_recording(replay: Callable):
    assert replay(PASS, []).lines == renamed([stable(None)])
    assert replay(PASS, ["", "  "], "--open").lines == []


def test_the_history_is_coalesced_and_counted(replay: Callable):
    lines = [insert("a", 1, 5), insert("a", 5, 8), insert("a", 3, 6), insert("b", 0, None)]
    outcome = replay(PASS, lines, "--history")
    assert outcome.out == (
        '{"stream":"query","start":0,"end":null,"count":1,"row":{"x":"b"}}\n'
        '{"stream":"query","start":1,"end":3,"count":1,"row":{"x":"a"}}\n'
        '{"stream":"query","start":3,"end":6,"count":2,"row":{"x":"a"}}\n'
        '{"stream":"query","start":6,"end":8,"count":1,"row":{"x":"a"}}\n'
    )


def test_the_history_is_sorted_by_stream_time_and_row(replay: Callable):
    script = (
        "CREATE STREAM s (x INT); CREATE STREAM zz AS SELECT x FROM s; CREATE STREAM aa AS SELECT x + 1 AS x FROM s;"
    )
    lines = [insert(10, 1, None), insert(9, 1, None), insert(1, 1, 2), insert(5, 0, 9)]
    outcome = replay(script, lines, "--history")
    assert [(e["stream"], e["start"], e["end"], e["row"]["x"]) for e in outcome.lines] == [
        *(("aa", 0, 9, 6), ("aa", 1, 2, 2), ("aa", 1, None, 10), ("aa", 1, None, 11)),
        *(("zz", 0, 9, 5), ("zz", 1, 2, 1), ("zz", 1, None, 10), ("zz", 1, None, 9)),
    ]


@pytest.mark.parametrize(
    "options", [[], ["--batch", "1"], ["--batch", "2"], ["--consistency", "middle", "--batch", "1"]]
)
def test_batches_do_not_change_the_history(replay: Callable, options: list[str]):
    lines = [insert("a", 1, 5), insert("a", 3, None), stable(2), adjust("a", 3, None, 7), insert("b", 4, 6), stable(6)]
    outcome = replay(COUNT, lines, "--history", *options)
    assert [(e["start"], e["end"], e["row"]["x"], e["row"]["n"]) for e in outcome.lines] == [
        *((1, 3, "a", 1), (3, 5, "a", 2), (4, 6, "b", 1), (5, 7, "a", 1)),
    ]


def test_middle_consistency_speculates_and_repairs(replay: Callable):
    lines = [insert("a", 1, 5), insert("a", 3, 9), stable(4)]
    strong = replay(COUNT, lines, "--batch", "1").lines
    middle = replay(COUNT, lines, "--batch", "1", "--consistency", "middle").lines
    assert {e["kind"] for e in strong} == {"insert", "stable"}
    assert "adjust" in {e["kind"] for e in middle}


def test_the_query_says_how_consistent_it_is(replay: Callable):
    lines = [insert("a", 1, 5), insert("a", 3, 9), stable(4)]
    middle = replay(COUNT, lines, "--batch", "1", "--consistency", "middle").out
    assert replay(f"{COUNT} CONSISTENCY MIDDLE", lines, "--batch", "1").out == middle
    strong = replay(COUNT, lines, "--batch", "1").out
    assert replay(f"{COUNT} CONSISTENCY MIDDLE", lines, "--batch", "1", "--consistency", "strong").out == strong


def test_named_queries_of_different_consistency_run_side_by_side(replay: Callable):
    script = (
        "CREATE STREAM s (x STRING); CREATE STREAM a AS SELECT COUNT(*) AS n FROM s CONSISTENCY MIDDLE;"
        "CREATE STREAM b AS SELECT COUNT(*) AS n FROM s CONSISTENCY STRONG"
    )
    outcome = replay(script, [insert("a", 1, 5), insert("a", 3, 9)], "--batch", "1")
    kinds = {(e["stream"], e["kind"]) for e in outcome.lines}
    assert ("a", "adjust") in kinds
    assert ("b", "adjust") not in kinds


def test_tick_lines_cut_and_batch_does_not(replay: Callable):
    lines = [insert("a", 1, 5), insert("b", 2, 5), TICK, insert("c", 0, 5)]
    ticked = replay(PASS, lines, "--consistency", "middle").lines
    assert [e["row"]["x"] for e in ticked if "row" in e] == ["a", "b", "c"]
    assert replay(PASS, lines, "--consistency", "middle", "--batch", "1").lines == ticked


def test_the_output_can_be_replayed(replay: Callable):
    lines = [insert("a", 1, 5), insert("a", 3, None), stable(2), adjust("a", 3, None, 7), insert("b", 4, 6), stable(6)]
    first = replay(COUNT, lines, "--consistency", "middle", "--batch", "1")
    again = "CREATE STREAM query (x STRING, n BIGINT); CREATE STREAM copy AS SELECT * FROM query"
    second = replay(again, first.out.splitlines(), "--history")
    expected = replay(COUNT, lines, "--history").out.replace('"query"', '"copy"')
    assert second.out == expected


def test_the_result_can_go_to_a_file(replay: Callable, tmp_path: Path):
    target = tmp_path / "out.jsonl"
    outcome = replay(PASS, [insert("ä", 1, 5)], "--output", str(target), "--history")
    assert outcome.out == ""
    assert target.read_text() == '{"stream":"query","start":1,"end":5,"count":1,"row":{"x":"ä"}}\n'
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_notices_go_to_stderr(replay: Callable):
    outcome = replay("CREATE STREAM s (x STRING); SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", [insert("a", 1, 5)])
    assert outcome.status == 0
    assert outcome.err.startswith("notice: UNBOUNDED_STATE")


# -- values -----------------------------------------------------------------------------------------------------------

VALUES = [
    ("TINYINT", -128, -128),
    ("INT", 5, 5),
    ("INT", 5.0, 5),
    ("BIGINT", 2**63 - 1, 2**63 - 1),
    ("DOUBLE", 1, 1.0),
    ("DOUBLE", 1.25, 1.25),
    ("DOUBLE", "NaN", "NaN"),
    ("DOUBLE", "-Infinity", "-Infinity"),
    ("FLOAT", 0.1, 0.10000000149011612),
    ("DECIMAL(10,2)", 12.5, "12.50"),
    ("DECIMAL(10,2)", "12.05", "12.05"),
    ("DECIMAL(38,0)", "99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
    ("STRING", 'a"b\nc', 'a"b\nc'),
    ("BOOLEAN", True, True),
    ("DATE", "2026-02-28", "2026-02-28"),
    ("TIMESTAMP", "2026-02-28T12:00:00", "2026-02-28T12:00:00"),
    ("TIMESTAMP", "2026-02-28 12:00:00.25", "2026-02-28T12:00:00.250000"),
    ("TIMESTAMP", "2026-02-28T12:00:00+02:00", "2026-02-28T10:00:00"),
    ("TIMESTAMP", 1_000_000, "1970-01-01T00:00:01"),
    ("BINARY", "AP8=", "AP8="),
    ("ARRAY<INT>", [1, None, 3], [1, None, 3]),
    ("ARRAY<DATE>", ["2026-02-28"], ["2026-02-28"]),
    ("STRUCT<a: INT, b: DOUBLE>", {"b": "NaN"}, {"a": None, "b": "NaN"}),
    ("INT", None, None),
]


@pytest.mark.parametrize(("type_", "given", "shown"), VALUES)
def test_values_of_every_type(replay: Callable, type_: str, given: object, shown: object):
    outcome = replay(f"CREATE STREAM s (x {type_}); SELECT * FROM s", [insert(given, 1, 2)], "--history")
    assert outcome.err == ""
    assert outcome.lines[0]["row"]["x"] == shown
    again = replay(f"CREATE STREAM s (x {type_}); SELECT * FROM s", [insert(shown, 1, 2)], "--history")
    assert again.out == outcome.out


def test_a_missing_key_is_null(replay: Callable):
    line = {"stream": "s", "kind": "insert", "start": 1, "end": 2, "row": {}}
    assert replay(PASS, [line], "--history").lines[0]["row"] == {"x": None}


# -- what is refused --------------------------------------------------------------------------------------------------

INT = "CREATE STREAM s (x INT, y STRING NOT NULL); CREATE STREAM d AS SELECT x FROM s; SELECT * FROM s"
GOOD = {"stream": "s", "kind": "insert", "start": 1, "end": 5, "row": {"x": 1, "y": "a"}}


def changed(**fields: object) -> dict:
    return {**GOOD, **fields}


def row(**fields: object) -> dict:
    return {**GOOD, "row": {**GOOD["row"], **fields}}


REFUSED = [
    ("{", "BAD_JSON: line 2: this is not JSON at column 2"),
    ("[1]", "BAD_JSON: line 2: a line must be a JSON object"),
    ('{"kind":"tick","kind":"tick"}', 'BAD_JSON: line 2: the key "kind" comes twice'),
    (
        '{"stream":"s","kind":"stable","at":NaN}',
        'BAD_JSON: line 2: NaN is not JSON\n  hint:   Write it as a string: "NaN".',
    ),
    (
        {"stream": "s"},
        'BAD_ELEMENT: line 2: the key "kind" is missing\n  hint:   It is one of insert, adjust, stable, tick.',
    ),
    (
        changed(kind="upsert"),
        'BAD_ELEMENT: line 2: unknown kind "upsert"\n  hint:   It is one of insert, adjust, stable, tick.',
    ),
    (changed(strat=1), 'BAD_ELEMENT: line 2: an insert has no key "strat"\n  hint:   Did you mean "start"?'),
    ({"kind": "tick", "at": 1}, 'BAD_ELEMENT: line 2: a tick has no key "at"'),
    (
        changed(stream="t"),
        'UNKNOWN_STREAM: line 2: stream "t" is not declared in the script\n  hint:   The script declares s.',
    ),
    (changed(stream="d"), 'UNKNOWN_STREAM: line 2: stream "d" is computed by a query and takes no elements'),
    (changed(stream=None), 'BAD_ELEMENT: line 2: the key "stream" is missing or no string'),
    (row(z=1), 'UNKNOWN_COLUMN: line 2: stream "s" has no column "z"\n  hint:   The columns are x, y.'),
    (
        row(x="a"),
        'BAD_VALUE: line 2: column "x" of stream "s" is INT, which "a" is not\n  detail: It must be a whole number.',
    ),
    (
        row(x=1.5),
        'BAD_VALUE: line 2: column "x" of stream "s" is INT, which 1.5 is not\n  detail: It must be a whole number.',
    ),
    (
        row(x=2**31),
        'BAD_VALUE: line 2: column "x" of stream "s" is INT, which 2147483648 is not\n'
        "  detail: It must be between -2147483648 and 2147483647.",
    ),
    (
        row(x=True),
        'BAD_VALUE: line 2: column "x" of stream "s" is INT, which true is not\n  detail: It must be a whole number.',
    ),
    (row(y=1), 'BAD_VALUE: line 2: column "y" of stream "s" is STRING, which 1 is not\n  detail: It must be a string.'),
    (row(y=None), 'NULL_VALUE: line 2: column "y" of stream "s" is NOT NULL'),
    (changed(row={"x": 1}), 'NULL_VALUE: line 2: column "y" of stream "s" is NOT NULL'),
    (changed(row=None), 'BAD_ELEMENT: line 2: the key "row" is missing or no object'),
    (changed(start=None), 'BAD_ELEMENT: line 2: "start" must be a whole number, not null'),
    (changed(end="x"), 'BAD_ELEMENT: line 2: "end" must be a whole number, or null for infinity, not "x"'),
    (changed(start=2**63), f'BAD_ELEMENT: line 2: "start" must fit in 64 bits, which {2**63} does not'),
    (changed(at=1), 'BAD_ELEMENT: line 2: an element has either "at" or "start" and "end"'),
    (
        changed(end=1),
        "EMPTY_INTERVAL: line 2: an element must start before it ends, not [1, 1)\n"
        '  hint:   Intervals are half-open: an element valid at the single instant t is [t, t+1), or "at": t.',
    ),
    ({"stream": "s", "kind": "stable"}, 'BAD_ELEMENT: line 2: the key "at" is missing'),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[m.partition("\n")[0] for _, m in REFUSED])
def test_a_wrong_line_is_refused(replay: Callable, line: dict | str, message: str, tmp_path: Path):
    target = tmp_path / "out.jsonl"
    outcome = replay(INT, [GOOD, line, GOOD], "--output", str(target))
    assert outcome.err == f"{message}\n"
    assert outcome.status == 2
    assert outcome.out == ""
    assert not target.exists()


ILLEGAL = [
    ([insert("a", 1, 5), adjust("a", 1, 6, 4)], "line 2"),
    ([insert("a", 1, 5), adjust("b", 1, 5, 4)], "line 2"),
    ([insert("a", 1, 5), adjust("a", 1, 5, 4), adjust("a", 1, 5, 3)], "line 3"),
    ([stable(4), insert("a", 3, 9)], "line 2"),
    ([insert("a", 1, 5), stable(6), adjust("a", 1, 5, 7)], "line 3"),
    ([insert("a", 1, 9), stable(6), adjust("a", 1, 9, 5)], "line 3"),
    ([insert("a", 1, 9), stable(6), adjust("a", 1, 9, 1)], "line 3"),
    ([insert("a", 1, 9), adjust("a", 1, 9, 0)], "line 2"),
    ([stable(6), stable(5)], "line 2"),
    ([stable(None), insert("a", 1, 9)], "line 2"),
]


@pytest.mark.parametrize(("lines", "place"), ILLEGAL)
def test_an_illegal_stream_is_refused(replay: Callable, lines: list[dict], place: str):
    outcome = replay(PASS, lines)
    assert outcome.status == 2
    assert f": {place}: " in outcome.err.splitlines()[0]
    assert outcome.out == ""


LEGAL = [
    [insert("a", 1, 9), stable(6), adjust("a", 1, 9, 6)],
    [insert("a", 1, 9), stable(6), adjust("a", 1, 9, None)],
    [insert("a", 1, 9), insert("a", 1, 9), adjust("a", 1, 9, 3), adjust("a", 1, 9, 1)],
    [stable(6), stable(6), insert("a", 6, 7)],
]


@pytest.mark.parametrize("lines", LEGAL)
def test_a_legal_stream_is_taken(replay: Callable, lines: list[dict]):
    assert replay(PASS, lines).status == 0


def test_a_mistake_in_the_script_is_shown_with_its_place(replay: Callable):
    outcome = replay("CREATE STREAM s (x STRING);\nSELECT y FROM s", [])
    assert outcome.status == 2
    assert outcome.err == (
        'UNKNOWN_COLUMN: column "y" does not exist\n'
        "  hint:   The columns are x.\n"
        "  line 2, column 8:  SELECT y FROM s\n"
        "                            ^\n"
    )


def test_a_script_needs_a_query(replay: Callable):
    outcome = replay("CREATE STREAM s (x STRING)", [])
    assert outcome.status == 2
    assert outcome.err.startswith("NO_QUERY: the script has no query\n")


def test_a_value_that_cannot_be_computed_stops_the_replay(replay: Callable, tmp_path: Path):
    target = tmp_path / "out.jsonl"
    script = "CREATE STREAM s (x STRING); SELECT CAST(x AS INT) AS n FROM s"
    outcome = replay(script, [insert("5", 1, 2), TICK, insert("five", 2, 3)], "--output", str(target))
    assert outcome.status == 2
    assert outcome.err.startswith('EXPRESSION_FAILED: query "query": could not compute CAST("x" AS INT)\n')
    assert not target.exists()


@pytest.mark.parametrize("consistency", ["strong", "middle"])
def test_any_number_of_shards_prints_the_same(replay: Callable, consistency: str):
    lines = [insert(x, start, start + 5) for start in range(12) for x in "abcd"[: 1 + start % 4]]
    options = ("--batch", "3", "--consistency", consistency)
    assert replay(COUNT, lines, *options, "--shards", "5").out == replay(COUNT, lines, *options).out


# -- the command itself -----------------------------------------------------------------------------------------------


def headwater(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-c", "from headwater.cli.main import main; main()", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def test_the_command_succeeds_with_status_0(tmp_path: Path):
    (tmp_path / "s.sql").write_text(PASS)
    (tmp_path / "e.jsonl").write_text(json.dumps(insert("a", 1, 5)))
    done = headwater("replay", "s.sql", "--input", "e.jsonl", "--history", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"stream":"query","start":1,"end":5,"count":1,"row":{"x":"a"}}\n'


def test_the_command_fails_with_status_2_and_one_message(tmp_path: Path):
    (tmp_path / "s.sql").write_text(PASS)
    (tmp_path / "e.jsonl").write_text(json.dumps(insert("a", 5, 1)))
    done = headwater("replay", "s.sql", "--input", "e.jsonl", "--output", "out.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("EMPTY_INTERVAL: line 1: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["replay", "none.sql", "--input", "e.jsonl"],
            'UNREADABLE: could not read "none.sql": No such file or directory\n',
        ),
        (["replay", "s.sql", "--input", "none"], 'UNREADABLE: could not read "none": No such file or directory\n'),
        (["replay", "s.sql", "--input", "b.jsonl"], 'UNREADABLE: "b.jsonl" is not text in UTF-8\n'),
        (
            ["replay", "s.sql", "--input", "e.jsonl", "--output", "no/where"],
            'UNWRITABLE: could not write "no/where": No such file or directory\n',
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
):
    (tmp_path / "s.sql").write_text(PASS)
    (tmp_path / "e.jsonl").write_text("")
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (2, message)


@pytest.mark.parametrize(
    "arguments", [["replay"], ["replay", "s.sql"], ["replay", "s.sql", "--input", "e", "--batch", "0"]]
)
def test_wrong_arguments_have_status_2(arguments: list[str]):
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_help_and_version_need_none_of_the_engine(tmp_path: Path):
    code = (
        "import sys; from typer.testing import CliRunner; from headwater.cli.main import app;"
        "assert CliRunner().invoke(app, ['replay', '--help']).exit_code == 0;"
        "assert CliRunner().invoke(app, ['--version']).stdout.startswith('headwater ');"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'duckdb', 'numba', 'pyarrow', 'sqlglot'}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("query", ["SELECT * FROM heartbeats", "SELECT x, heartbeat(s) AS h FROM s"])
def test_what_is_valid_in_wall_clock_time_is_refused_where_there_is_none(replay: Callable, query: str):
    outcome = replay(f"CREATE STREAM s (x STRING, ts TIMESTAMP) ORDERED BY ts; {query};", [])
    assert outcome.status == 2
    assert 'NO_WALL_CLOCK: query "query" reads "heartbeats", and a replay has no wall clock' in outcome.err


def test_times_that_go_along_with_the_wall_clock_are_as_the_recording_says(replay: Callable):
    script = "CREATE STREAM s (x STRING, ts TIMESTAMP) ORDERED BY ts ALONG WALL CLOCK; SELECT x FROM s;"
    line = {"stream": "s", "kind": "insert", "at": 5, "row": {"x": "d", "ts": 5}}
    outcome = replay(script, [line])
    assert outcome.status == 0
    assert len(outcome.lines) == 2
    assert "notice: NO_WALL_CLOCK: a replay has no wall clock" in outcome.err


def test_a_recording_has_no_late_rows_unless_it_names_them(replay: Callable):
    script = "CREATE STREAM s (x STRING, t INT) ORDERED BY t; SELECT x FROM s_late;"
    assert replay(script, [insert("c", 1, 8)], "--history").lines == []
    found = replay(script, [insert("c", 1, 8) | {"stream": "s_late", "row": {"x": "c", "t": 1}}], "--history")
    assert [line["row"] for line in found.lines] == [{"x": "c"}]


def test_columns_are_found_without_regard_to_case(replay: Callable):
    script = "CREATE STREAM s (userId INT, y INT); SELECT userId, y FROM s"
    rows = [{"userid": 1, "Y": 2}, {"userId": 3, "y": 4}, {"USERID": 5}]
    outcome = replay(script, [{"stream": "s", "kind": "insert", "at": i, "row": row} for i, row in enumerate(rows)])
    found = [line["row"] for line in outcome.lines if line["kind"] == "insert"]
    assert found == [{"userId": 1, "y": 2}, {"userId": 3, "y": 4}, {"userId": 5, "y": None}]
    wrong = replay(script, [{"stream": "s", "kind": "insert", "at": 1, "row": {"userid": 1, "USERID": 2}}])
    assert wrong.status == 2
    assert wrong.err.startswith('AMBIGUOUS_COLUMN: line 1: stream "s": column "userId" may be any of userid, USERID')


def test_every_select_of_a_script_runs(replay: Callable):
    script = "CREATE STREAM s (x INT); SELECT x FROM s; SELECT x + 1 AS y FROM s;"
    outcome = replay(script, [{"stream": "s", "kind": "insert", "at": 1, "row": {"x": 5}}], "--history")
    assert [(line["stream"], line["row"]) for line in outcome.lines] == [("query", {"y": 6}), ("query_1", {"x": 5})]

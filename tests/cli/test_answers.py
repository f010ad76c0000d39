"""What ``headwater replay`` says on stderr of SHOW, DESCRIBE and CONSISTENCY; stdout is for elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

STREAM = "CREATE STREAM s (x STRING, n INT);"
LINE = {"stream": "s", "kind": "insert", "at": 1, "row": {"x": "a", "n": 1}}


def test_answers_are_aligned_text_on_stderr(replay: Callable):
    outcome = replay(f"{STREAM} SHOW STREAMS; SELECT x FROM s; DESCRIBE s", [LINE], "--history")
    assert outcome.status == 0
    assert [line["row"] for line in outcome.lines] == [{"x": "a"}]
    assert outcome.err == (
        "stream  columns          time  source  promises\n"
        "------  ---------------  ----  ------  --------\n"
        "s       x STRING, n INT\n"
        "\n"
        "column  type    nullable  role\n"
        "------  ------  --------  ----\n"
        "x       STRING  yes\n"
        "n       INT     yes\n"
        "\n"
    )


def test_a_script_may_only_ask(replay: Callable):
    outcome = replay(f"{STREAM} SHOW TABLES", [LINE])
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err.startswith("name  kind")


def test_a_script_without_a_query_or_a_question_is_refused(replay: Callable):
    outcome = replay(STREAM, [LINE])
    assert outcome.status == 2
    assert outcome.err.startswith("NO_QUERY: ")


def test_rows_wait_and_are_forgotten_in_the_time_of_the_recording(replay: Callable):
    rows = [(1, "a"), (5, "b"), (2, "late"), (9, "c")]
    lines = [{"stream": "s", "kind": "insert", "at": t, "row": {"x": x, "n": 1}} for t, x in rows]
    script = f"{STREAM} SELECT x FROM s CONSISTENCY BLOCK 2 REMEMBER 2"
    outcome = replay(script, lines, "--batch", "1")
    assert outcome.status == 0
    assert [line["row"]["x"] for line in outcome.lines if line["kind"] == "insert"] == ["a", "b", "c"]
    assert [line["at"] for line in outcome.lines if line["kind"] == "stable"] == [-1, 3, 7, None]
    waiting = replay(script.replace("REMEMBER 2", "REMEMBER UNBOUNDED"), lines, "--batch", "1")
    assert [line["row"]["x"] for line in waiting.lines if line["kind"] == "insert"] == ["a", "late", "b", "c"]


def test_a_recording_has_no_wall_clock(replay: Callable):
    outcome = replay(f"{STREAM} SELECT x FROM s CONSISTENCY WEAK REMEMBER 5 SECONDS BY WALL CLOCK", [LINE])
    assert outcome.status == 2
    assert outcome.err.startswith('NO_WALL_CLOCK: query "query" cannot run with CONSISTENCY WEAK REMEMBER 5 SECONDS BY')
    assert replay(f"{STREAM} SELECT x FROM s CONSISTENCY WEAK", [LINE], "--consistency", "middle").status == 0


def test_a_query_that_does_not_run_may_be_weak(replay: Callable):
    script = f"{STREAM} CREATE STREAM w AS SELECT x FROM s CONSISTENCY WEAK; SELECT * FROM w"
    assert replay(script, [LINE]).status == 0


def test_a_failing_function_is_a_message_and_no_traceback(replay: Callable):
    script = f"{STREAM} CREATE FUNCTION f(x STRING) RETURNS STRING AS 'operator:neg'; SELECT f(x) AS y FROM s"
    outcome = replay(script, [LINE])
    assert outcome.status == 2
    assert outcome.err.startswith(
        'EXPRESSION_FAILED: query "query": function "f" failed\n  detail: ArrowNotImplementedError: '
    )


def test_constants_join_with_streams(replay: Callable):
    script = f"""{STREAM} CREATE TABLE names (n INT, name STRING) AS VALUES (1, 'one'), (2, 'two');
                 SELECT x, name FROM s JOIN names USING (n)"""
    (line,) = replay(script, [LINE], "--history").lines
    assert (line["row"], line["start"], line["end"]) == ({"x": "a", "name": "one"}, 1, 2)


def test_elements_of_a_constant_table_are_refused(replay: Callable):
    outcome = replay("CREATE TABLE t AS VALUES (1); SELECT * FROM t", [{**LINE, "stream": "t"}])
    assert outcome.status == 2
    assert outcome.err.startswith("UNKNOWN_STREAM: line 1: ")


def test_a_relation_is_replayed_with_its_intervals_and_adjustments(replay: Callable):
    script = "CREATE RELATION r (x STRING PRIMARY KEY); SELECT * FROM r"
    lines = [
        {"stream": "r", "kind": "insert", "start": 1, "end": None, "row": {"x": "a"}},
        {"stream": "r", "kind": "adjust", "start": 1, "end": None, "new_end": 5, "row": {"x": "a"}},
    ]
    (line,) = replay(script, lines, "--history").lines
    assert (line["start"], line["end"]) == (1, 5)


def test_explain_shows_every_select_and_says_notices(command: Callable, tmp_path: Path):
    script = tmp_path / "script.sql"
    script.write_text(f"{STREAM} SELECT x FROM s; SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED];")
    outcome = command("explain", script)
    assert outcome.status == 0
    assert [line for line in outcome.out.splitlines() if line.startswith("query")] == ["query_1:", "query:"]
    assert outcome.err.startswith('notice: UNBOUNDED_STATE: an aggregate keeps state of stream "s" for ever\n')

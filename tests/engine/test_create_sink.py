"""CREATE SINK: where the answers of a query go is said in SQL."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.cli.run import Options, run
from headwater.errors import InputError, SqlError
from headwater.language.binder import bind_script
from headwater.runtime.replay import replay

STREAM = "CREATE STREAM s (x INT, t INT) ORDERED BY t IN ORDER;"
SCRIPT = """
CREATE STREAM s (x INT, t INT) SOURCE csv('in.csv') ORDERED BY t IN ORDER;
CREATE SINK big TO parquet('out/big', compression => 'zstd') EVERY 1 MINUTE AS SELECT x FROM s WHERE x > 1;
CREATE SINK all_of_them TO csv('out/all') AS SELECT x FROM s;
CREATE SINK lines TO json('out/lines') AS SELECT x FROM s WHERE x = 3 EMIT ON CLOSE;
SELECT x FROM s WHERE x < 2;
"""


@pytest.fixture
def engine() -> Iterator[hw.Engine]:
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAM)
        yield engine


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "in.csv").write_text("x,t\n1,1\n2,2\n3,3\n")
    path = tmp_path / "script.sql"
    path.write_text(SCRIPT)
    return path


def column(folder: Path) -> list[int]:
    return sorted(row["x"] for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist())


def test_a_script_needs_no_options_for_where_answers_go(script: Path, capsys: pytest.CaptureFixture[str]):
    run(Options(script, runner="inprocess", once=True))
    out = script.parent / "out"
    assert column(out / "big") == [2, 3]
    assert [file.read_text() for file in (out / "all").glob("tick*")] == [
        '"x","_start","_end"\n1,1,2\n2,2,3\n3,3,4\n',
    ]
    assert [file.read_text() for file in (out / "lines").glob("tick*")] == ['{"x":3,"_start":3,"_end":4}\n']
    assert capsys.readouterr().out == '{"_query":"query","x":1,"_start":1,"_end":2}\n'


def test_a_run_goes_on_with_its_sinks(script: Path):
    options = Options(script, runner="inprocess", once=True, checkpoint=str(script.parent / "checkpoint"), discard=True)
    run(options)
    run(options)
    assert column(script.parent / "out" / "big") == [2, 3]


def test_a_query_starts_with_its_sink_and_paths_begin_where_it_was_declared(engine: hw.Engine, tmp_path: Path):
    (query,) = engine.script("CREATE SINK out TO parquet('answers') AS SELECT x FROM s", folder=tmp_path).queries
    started = query.start()
    assert started.name == "out"
    assert started.sink.describe()["path"] == str(tmp_path / "answers")
    engine.push("s", [{"x": 1, "t": 1}])
    engine.run_to_end()
    assert column(tmp_path / "answers") == [1]


def test_start_with_another_sink(engine: hw.Engine, tmp_path: Path):
    started = engine.sql(f"CREATE SINK out TO parquet('{tmp_path / 'answers'}') AS SELECT x FROM s").start(
        hw.sinks.memory()
    )
    engine.push("s", [{"x": 1, "t": 1}])
    assert started.history().rows()
    assert not (tmp_path / "answers").exists()


def test_the_interval_of_a_sink(engine: hw.Engine, tmp_path: Path):
    query = engine.sql(f"CREATE SINK out TO json('{tmp_path}/out') EVERY 90 SECONDS AS SELECT x FROM s")
    assert query.start().sink.every == 90_000_000


@pytest.mark.parametrize(("written", "most"), [("64", 64), ("false", 0)])
def test_when_files_become_fewer(engine: hw.Engine, tmp_path: Path, written: str, most: int):
    query = engine.sql(f"CREATE SINK out TO parquet('{tmp_path}/out', compact => {written}) AS SELECT x FROM s")
    assert query.start().sink.compact == most


def test_a_delta_table(engine: hw.Engine, tmp_path: Path):
    import deltalake

    engine.sql(f"CREATE SINK out TO delta('{tmp_path}/out', partition_by => 'x') AS SELECT x FROM s").start()
    engine.push("s", [{"x": 1, "t": 1}])
    engine.run_to_end()
    assert deltalake.DeltaTable(f"{tmp_path}/out").metadata().partition_columns == ["x"]


def test_the_terminal_and_nothing(engine: hw.Engine, capsys: pytest.CaptureFixture[str]):
    engine.sql("CREATE SINK shown TO console(form => 'lines', rows => 1) AS SELECT x FROM s").start()
    counted = engine.sql("CREATE SINK counted TO noop() AS SELECT x FROM s").start()
    engine.push("s", [{"x": 1, "t": 1}, {"x": 2, "t": 1}])
    assert "+ x=1 [1, 2)\n… and 1 more" in capsys.readouterr().out
    assert counted.sink.rows == 2


def test_show_describe_and_drop(engine: hw.Engine, tmp_path: Path):
    query = engine.sql(f"CREATE SINK out TO parquet('{tmp_path}/out') EVERY 1 MINUTE AS SELECT x FROM s")
    shown = engine.sql("SHOW SINKS")
    assert f"out   x INT    parquet('{tmp_path}/out')  1 MINUTE  s     not started" in shown
    query.start()
    assert "running" in engine.sql("SHOW SINKS LIKE 'o%'")
    assert "out" not in engine.sql("SHOW STREAMS")
    assert "out" in engine.sql("SHOW QUERIES")
    assert "x       INT" in engine.sql("DESCRIBE SINK out")
    assert "Source s" in engine.sql("EXPLAIN out")
    with pytest.raises(SqlError, match='stream "s" is used by "out"'):
        engine.sql("DROP STREAM s")
    with pytest.raises(SqlError, match='"out" is a sink, not a stream'):
        engine.sql("DROP STREAM out")
    engine.push("s", [{"x": 7, "t": 1}])
    engine.sql("DROP SINK out")
    assert engine.runs == {}
    assert column(tmp_path / "out") == [7], "what waited has gone out"
    engine.sql("DROP SINK IF EXISTS out; DROP STREAM s")


def test_or_replace_and_if_not_exists(engine: hw.Engine, tmp_path: Path):
    engine.sql(f"CREATE SINK out TO csv('{tmp_path}/a') AS SELECT x FROM s")
    with pytest.raises(SqlError, match='sink "out" exists already'):
        engine.sql(f"CREATE SINK out TO csv('{tmp_path}/a') AS SELECT x FROM s")
    engine.sql(f"CREATE OR REPLACE SINK out TO json('{tmp_path}/b') AS SELECT x FROM s")
    assert "json(" in engine.sql("SHOW SINKS")
    with pytest.warns(hw.HeadwaterNotice, match="exists already"):
        engine.sql(f"CREATE SINK IF NOT EXISTS out TO csv('{tmp_path}/a') AS SELECT x FROM s")
    assert "json(" in engine.sql("SHOW SINKS")


def test_a_sink_that_nobody_has_started_is_told_of(engine: hw.Engine, tmp_path: Path):
    query = engine.sql(f"CREATE SINK out TO csv('{tmp_path}/a') AS SELECT x FROM s")
    with pytest.warns(hw.HeadwaterNotice, match='NOT_STARTED: sink "out" does not run'):
        engine.run_to_end(end_streams=False)
    query.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.run_to_end()


def test_replay_takes_it_for_a_named_query(tmp_path: Path):
    recording = tmp_path / "recording.jsonl"
    recording.write_text('{"stream":"s","kind":"insert","at":1,"row":{"x":5,"t":1}}\n')
    bound = bind_script(f"{STREAM} CREATE SINK out TO nowhere('at all') AS SELECT x FROM s")
    assert [line for line in replay(bound, recording) if "insert" in line] == [
        '{"stream":"out","kind":"insert","start":1,"end":2,"row":{"x":5}}'
    ]


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("CREATE SINK o TO parkett('a') AS SELECT x FROM s", "UNKNOWN_SINK", 'there is no sink function "parkett"'),
        ("CREATE SINK o TO parquet() AS SELECT x FROM s", "MISSING_ARGUMENT", 'argument "path" is missing'),
        ("CREATE SINK o TO parquet('') AS SELECT x FROM s", "WRONG_ARGUMENT", '"path" must be a folder'),
        ("CREATE SINK o TO csv('a', 'b') AS SELECT x FROM s", "WRONG_ARGUMENT", "at most 1 argument"),
        (
            "CREATE SINK o TO parquet('a', compresion => 'zstd') AS SELECT x FROM s",
            "UNKNOWN_OPTION",
            'no option "compresion"',
        ),
        (
            "CREATE SINK o TO parquet('a', compression => 'zip') AS SELECT x FROM s",
            "WRONG_ARGUMENT",
            "must be 'snappy' or 'zstd'",
        ),
        ("CREATE SINK o TO console(rows => 0) AS SELECT x FROM s", "WRONG_ARGUMENT", "whole number from 1"),
        (
            "CREATE SINK o TO csv('a') AS SELECT x FROM s; CREATE SINK p TO json('./b/../a') AS SELECT x FROM s",
            "SHARED_FOLDER",
            'sinks "o" and "p" cannot both write into',
        ),
        ("CREATE SINK o TO parquet('a', compact => 1) AS SELECT x FROM s", "WRONG_ARGUMENT", "from 2 on, or false"),
        ("CREATE SINK o TO csv('a', compact => 64) AS SELECT x FROM s", "UNKNOWN_OPTION", 'no option "compact"'),
        ("CREATE SINK o AS SELECT x FROM s", "SYNTAX", "expected TO with the place"),
        ("CREATE SINK o TO csv('a') SELECT x FROM s", "SYNTAX", "expected EVERY, or AS with a query"),
        (
            "CREATE SINK o TO csv('a') EVERY 5 AS SELECT x FROM s",
            "TIME_BOUND",
            "EVERY is wall-clock time and needs a unit",
        ),
        ("CREATE SINK o TO csv('a') EVERY 0 SECONDS AS SELECT x FROM s", "TIME_BOUND", "longer than nothing"),
        ("CREATE SINK o TO csv('a') EVERY 1 MONTH AS SELECT x FROM s", "TIME_BOUND", "no fixed length"),
        ("CREATE SINK o TO csv AS SELECT x FROM s", "SYNTAX", "arguments of the sink"),
        ("CREATE SINK o TO csv('a') AS SELECT x FROM s; SELECT x FROM o", "SINK_READ", 'sink "o" cannot be read'),
        ("DROP SINK o", "UNKNOWN_SINK", 'sink "o" does not exist'),
    ],
)
def test_mistakes(engine: hw.Engine, sql: str, code: str, message: str):
    with pytest.raises((InputError, SqlError)) as refused:
        engine.sql(sql)
    assert refused.value.code == code
    assert message in str(refused.value)
    assert len(engine.sql("SHOW SINKS").splitlines()) == 2, "a mistake changes nothing"


def test_a_near_miss_is_named(engine: hw.Engine):
    with pytest.raises(InputError) as refused:
        engine.sql("CREATE SINK o TO parkquet('a') AS SELECT x FROM s")
    assert refused.value.hint == 'Did you mean "parquet"?'


def test_the_script_is_checked_before_anything_starts(script: Path):
    script.write_text(SCRIPT.replace("zstd", "zip"))
    with pytest.raises(InputError, match="compression"):
        run(Options(script, runner="inprocess", once=True))
    assert not (script.parent / "out").exists()

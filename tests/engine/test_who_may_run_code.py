"""What SQL texts, data and checkpoints can make the engine do: answer queries, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.malice import MADE, TEXT
from typer.testing import CliRunner

import headwater as hw
from headwater.cli.main import app
from headwater.errors import HeadwaterError, StateError
from headwater.expressions.connection import connection
from headwater.language.binder import bind_script
from headwater.state.sealed import seal, unseal

STREAM = "CREATE STREAM s (x STRING, at BIGINT) ORDERED BY at IN ORDER;"


# -- expressions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        *("read_text('/etc/passwd')", "read_blob('/etc/passwd')", "getenv('HOME')", "glob('/*')", "query('SELECT 1')"),
        *("java_method('java.lang.System', 'getenv', 'HOME')", "reflect('java.lang.Runtime', 'getRuntime')"),
        *(
            "query_table('s')",
            "getvariable('x')",
            "current_setting('threads')",
            "load_aws_credentials()",
            "ai_gen('x')",
        ),
        *("input_file_name()", "version()", "try_reflect('a', 'b')", "sniff_csv('/etc/passwd')", "system('true')"),
    ],
)
def test_functions_that_leave_the_row_are_not_there(call: str):
    with pytest.raises(HeadwaterError) as told:
        bind_script(f"{STREAM} SELECT {call} AS y FROM s")
    assert told.value.code == "UNKNOWN_FUNCTION"


@pytest.mark.parametrize("name", ["'/etc/passwd'", "read_csv('/etc/passwd')", "glob('/*')", "`/etc/passwd`", "table_"])
def test_files_and_variables_are_no_streams(name: str):
    table_ = pa.table({"x": [1]})
    assert table_.num_rows
    with pytest.raises(HeadwaterError):
        bind_script(f"{STREAM} SELECT * FROM {name}")


@pytest.mark.parametrize(
    "text",
    [
        *("SELECT * FROM read_text('{place}')", "SELECT * FROM '{place}'", "COPY (SELECT 1) TO '{place}.out'"),
        *(
            "INSTALL httpfs",
            "LOAD httpfs",
            "ATTACH '{place}.db'",
            "SELECT * FROM in_sight",
            "IMPORT DATABASE '{place}'",
        ),
        *("SET enable_external_access = true", "SET lock_configuration = false", "RESET lock_configuration"),
    ],
)
def test_what_computes_expressions_reaches_nothing_else(text: str, tmp_path: Path):
    """Even if a text came through the binder."""
    in_sight = pa.table({"x": [1]})
    assert in_sight.num_rows
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        connection().execute(text.format(place=tmp_path / "secret.csv")).fetchall()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret.csv"]


@pytest.mark.parametrize("text", [TEXT, "'||(SELECT 1)||'", '"; INSTALL httpfs; --', "\\'); SELECT 1; --", "${x}\0"])
def test_a_value_is_a_value(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAM)
        run = engine.sql("SELECT x, UPPER(x) AS y FROM s WHERE x <> 'a'").start()
        engine.push("s", [{"x": text, "at": 1}], frontier=10)
        assert run.history().to_arrow().column("x").to_pylist() == [text]
    with hw.connect(runner="inprocess") as engine:
        engine.sql(STREAM)
        engine.sql("SELECT CAST(x AS INT) AS y FROM s").start()
        with pytest.raises(HeadwaterError) as told:
            engine.push("s", [{"x": text, "at": 1}], frontier=10)
        assert told.value.code == "EXPRESSION_FAILED"
    assert not (tmp_path / MADE).exists()


# -- CREATE FUNCTION ----------------------------------------------------------------------------------------------------

FUNCTION = "CREATE {} FUNCTION f(x DOUBLE) RETURNS DOUBLE AS 'this_would_be_imported:f';"


@pytest.mark.parametrize("kind", ["", "AGGREGATE", "OR REPLACE"])
def test_python_functions_can_be_switched_off(kind: str):
    with hw.connect(runner="inprocess", python_functions=False) as engine:
        for text in (FUNCTION.format(kind), f"SET python_functions = on; {FUNCTION.format(kind)}"):
            with pytest.raises(HeadwaterError):
                engine.sql(text)
        with pytest.raises(HeadwaterError) as told:
            engine.script(FUNCTION.format(kind))
    assert told.value.code == "PYTHON_FUNCTIONS_OFF"


@pytest.mark.parametrize(
    "command", [["run"], ["run", "--runner", "inprocess"], ["explain"], ["replay", "--input", "/dev/null"]]
)
def test_and_on_the_command_line(command: list[str], tmp_path: Path):
    script = tmp_path / "s.sql"
    script.write_text(f"{FUNCTION.format('')} {STREAM} SELECT x FROM s;")
    ran = CliRunner().invoke(app, [command[0], str(script), *command[1:], "--no-python-functions"])
    assert ran.exit_code == 2
    assert "PYTHON_FUNCTIONS_OFF" in ran.output


# -- checkpoints --------------------------------------------------------------------------------------------------------

Change = Callable[[dict, Path], None]


def _segment_elsewhere(manifest: dict, outside: Path) -> None:
    for its in manifest["records"].values():
        for record in its.values():
            record["state"] = {"segments": [{"name": f"../../{outside.stem}", "rows": 1}]}


def _staged_elsewhere(manifest: dict, outside: Path) -> None:
    manifest["outputs"] = {"q": [[1, None, str(outside)]]}


def _staged_above(manifest: dict, outside: Path) -> None:
    manifest["outputs"] = {"q": [[1, None, f"{outside.parent}/checkpoint/staged/../../{outside.name}"]]}


def _staged_above_a_sink(manifest: dict, outside: Path) -> None:
    manifest["diverted"] = {"q": [[1, None, f"{outside.parent}/x/../_staged/tick-{outside.name}"]]}


def _staged_as_a_list(manifest: dict, outside: Path) -> None:
    manifest["outputs"] = {"q": [[1, None, [str(outside)]]]}


@pytest.mark.parametrize(
    "change", [_segment_elsewhere, _staged_elsewhere, _staged_above, _staged_above_a_sink, _staged_as_a_list]
)
def test_a_manifest_names_no_file_elsewhere(change: Change, tmp_path: Path):
    outside = tmp_path / "outside.arrow"
    outside.write_text("not yours")
    _with_a_checkpoint(tmp_path / "checkpoint")
    _rewrite(tmp_path / "checkpoint", lambda manifest: change(manifest, outside))
    with pytest.raises(StateError, match="no tick of this checkpoint has written"):
        hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint").close()
    assert outside.read_text() == "not yours"


def test_texts_in_a_manifest_are_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A value that looks like a pickle, in every text there is: an error or an answer, and nothing runs."""
    monkeypatch.chdir(tmp_path)
    _with_a_checkpoint(tmp_path / "checkpoint")
    _rewrite(tmp_path / "checkpoint", _poisoned)
    try:
        _with_a_checkpoint(tmp_path / "checkpoint")
    except HeadwaterError as problem:
        assert problem.code  # noqa: PT017 - either will do
    assert not (tmp_path / MADE).exists()


def _poisoned(value: object) -> object:
    if isinstance(value, dict):
        for key in value:
            if key != "format":
                value[key] = _poisoned(value[key])
        return value
    if isinstance(value, list):
        return [_poisoned(v) for v in value]
    return TEXT if isinstance(value, str) else value


def _with_a_checkpoint(place: Path) -> None:
    with hw.connect(runner="inprocess", checkpoint=place) as engine:
        engine.sql(STREAM)
        engine.sql("SELECT x, COUNT(*) AS n FROM s WINDOW(RANGE 100) GROUP BY x", name="q").start()
        engine.push("s", [{"x": TEXT, "at": 1}])


def _rewrite(place: Path, change: Callable[[dict], object]) -> None:
    """With the checksum that it has then: anybody can compute that."""
    for path in (place / "manifests").glob("[0-9]*.json"):
        manifest = unseal(path.read_bytes())
        change(manifest)
        path.write_bytes(seal(manifest))

"""Restarts: with other shards, with other queries, from a checkpoint that is damaged, in use, or of another version."""

from __future__ import annotations

import errno
import json
import logging
import re
import resource
import threading
from pathlib import Path
from typing import Any

import pytest
from engine_market import (
    QUERIES,
    STEPS,
    answers,
    bring,
    by_tick,
    check,
    diverted,
    garbage,
    open_market,
    run_market,
    state,
)
from pyarrow import fs
from tests.crash import Crash, in_child

import headwater as hw
from headwater.errors import InputError, StateError
from headwater.runtime import points
from headwater.runtime.checkpoint import Checkpoint
from headwater.state.filesystem import Folder
from headwater.state.sealed import seal, unseal

# -- shards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [(2, 3, 1, 5), (1, 4, 2, 2), (5, 1, 5, 2)])
def test_another_number_of_shards_on_restart(shards: tuple[int, ...], tmp_path: Path, undisturbed: dict[str, Any]):
    for steps, number in enumerate(shards, 1):
        run_market(tmp_path, steps=steps, end=False, shards=number)
    run_market(tmp_path, shards=shards[-1])
    assert by_tick(answers(tmp_path)) == by_tick(undisturbed["answers"])
    assert diverted(tmp_path) == undisturbed["diverted"]
    assert state(tmp_path)["counts"] == undisturbed["state"]["counts"]
    assert garbage(tmp_path) == []


@pytest.mark.parametrize("point", [points.BEFORE_THE_JOB, points.BEFORE_THE_MANIFEST, points.AFTER_THE_MANIFEST])
def test_a_crash_while_state_moves_to_other_shards(point: str, tmp_path: Path, undisturbed: dict[str, Any]):
    run_market(tmp_path, steps=2, end=False, shards=2)
    assert in_child(run_market, tmp_path, shards=3, crash=Crash(point)).killed
    assert in_child(run_market, tmp_path, shards=4, crash=Crash(point)).killed
    run_market(tmp_path, shards=1)
    assert by_tick(answers(tmp_path)) == by_tick(undisturbed["answers"])
    assert garbage(tmp_path) == []


# -- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_last_manifests_are_kept_and_nothing_else(keep: int, tmp_path: Path):
    run_market(tmp_path, keep=keep)
    assert len(list((tmp_path / "checkpoint" / "manifests").iterdir())) == keep
    assert garbage(tmp_path) == []
    run_market(tmp_path, keep=1)
    assert len(list((tmp_path / "checkpoint" / "manifests").iterdir())) == 1
    assert garbage(tmp_path) == []


def test_waiting_for_the_disk_changes_nothing_else(tmp_path: Path, undisturbed: dict[str, Any]):
    run_market(tmp_path, sync=True)
    check(tmp_path, undisturbed)


def test_what_failed_attempts_leave_is_deleted(tmp_path: Path):
    run_market(tmp_path, steps=1, end=False)
    orphan = tmp_path / "checkpoint" / "segments" / "0123456789abcdef.arrow"
    orphan.write_bytes(b"of an attempt that failed")
    (tmp_path / "checkpoint" / "manifests" / "000000000009.json.unfinished").write_text("{")
    run_market(tmp_path, steps=2, end=False)
    assert garbage(tmp_path) == []


# -- whose it is ------------------------------------------------------------------------------------------------------


def test_one_process_at_a_time(tmp_path: Path):
    with open_market(tmp_path):
        with pytest.raises(StateError, match=r"CHECKPOINT_IN_USE: the checkpoint .* is used by another process"):
            hw.connect(runner="inprocess", checkpoint=tmp_path / "checkpoint")
        error = in_child(run_market, tmp_path).error
        assert isinstance(error, StateError)
        assert error.code == "CHECKPOINT_IN_USE"
    run_market(tmp_path, steps=1)


def test_a_checkpoint_on_another_file_system(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    """One that is not local as far as anybody can see: nothing is mapped, renamed by the system or locked."""
    known = fs.FileSystem.from_uri

    def opened(uri: str) -> tuple[fs.FileSystem, str]:
        if not uri.startswith("elsewhere://"):
            return known(uri)
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), uri.removeprefix("elsewhere://")

    monkeypatch.setattr(fs, "FileSystem", type("FileSystem", (), {"from_uri": staticmethod(opened)}))
    for steps in range(1, STEPS):
        run_market(tmp_path, steps=steps, end=False, checkpoint="elsewhere://checkpoint")
    with open_market(tmp_path, checkpoint="elsewhere://checkpoint") as first:
        run_market(tmp_path, checkpoint="elsewhere://checkpoint")
        with pytest.raises(StateError, match="CHECKPOINT_IN_USE"):
            first.run_to_end()
    run_market(tmp_path, checkpoint="elsewhere://checkpoint")  # the other one left segments behind
    check(tmp_path, undisturbed)
    assert (tmp_path / "checkpoint" / "owner").exists()
    assert not (tmp_path / "checkpoint" / "lock").exists()


def test_answers_belong_to_their_checkpoint(tmp_path: Path):
    run_market(tmp_path, steps=1, end=False)
    (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="computed under another checkpoint"):
        open_market(tmp_path)


# -- damage -----------------------------------------------------------------------------------------------------------


def last_manifest(folder: Path) -> Path:
    return max((folder / "checkpoint" / "manifests").glob("*.json"))


def test_a_format_of_another_version(tmp_path: Path):
    run_market(tmp_path, steps=1, end=False)
    path = last_manifest(tmp_path)
    kept = unseal(path.read_bytes())
    for version, data in [(99, seal({**kept, "format": 99})), (2, json.dumps({**kept, "format": 2}).encode())]:
        path.write_bytes(data)  # the formats before 3 had no checksum
        told = f"STATE_VERSION: the checkpoint .* has format {version}, and this version reads 4"
        with pytest.raises(StateError, match=told):
            open_market(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b'{"format": 1, "tick"', b"[]", b'{"format": 4}', seal({"format": 4, "tick": "x"}), b"\xff\xfe\x00"],
)
def test_a_damaged_manifest_is_named(content: bytes, tmp_path: Path):
    run_market(tmp_path, steps=1, end=False)
    path = last_manifest(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(StateError, match=f'STATE_DAMAGED: the manifest "{path}" cannot be read'):
        open_market(tmp_path)
    path.write_bytes(whole)
    run_market(tmp_path, steps=2)


def test_any_bit_of_a_manifest_that_changes_is_seen(tmp_path: Path):
    run_market(tmp_path, steps=1, end=False, queries={"pages": QUERIES["pages"], "bidders": QUERIES["bidders"]})
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    for path in (last_manifest(tmp_path), tmp_path / "checkpoint" / "newest.json"):
        whole = path.read_bytes()
        assert json.loads(whole)["tick"] == checkpoint.newest() == 1
        changed = [whole[:n] for n in range(len(whole))]
        changed += [whole[:n] + bytes([whole[n] ^ 1 << n % 8]) + whole[n + 1 :] for n in range(len(whole))]
        changed += [whole + b" ", whole.replace(b":1", b":2", 1), whole.replace(b'"tick":1', b'"tick": 1')]
        for data in changed:
            path.write_bytes(data)
            with pytest.raises(StateError, match=f'^STATE_DAMAGED: .*"{path}" cannot be read'):
                checkpoint.read(checkpoint.newest() or 0)
        path.write_bytes(whole)


def test_a_manifest_that_is_lost_is_missed(tmp_path: Path, undisturbed: dict[str, Any]):
    run_market(tmp_path, steps=2, end=False)
    newest = last_manifest(tmp_path)
    lost = newest.rename(tmp_path / "lost.json")
    with pytest.raises(StateError, match=f'STATE_MISSING: the manifest "{newest}" does not exist'):
        open_market(tmp_path)
    (tmp_path / "checkpoint" / "newest.json").unlink()  # who asks to go back is asked whether the sinks can
    error = in_child(run_market, tmp_path).error
    assert isinstance(error, StateError)
    assert re.search(r'STATE_BEHIND: .* is behind the answers in ".*/busy"\n.*up to tick 2', str(error))
    lost.rename(newest)
    run_market(tmp_path)
    check(tmp_path, undisturbed)


def test_without_any_manifest_nothing_begins_anew(tmp_path: Path):
    run_market(tmp_path, steps=1, end=False)
    for path in (tmp_path / "checkpoint" / "manifests").iterdir():
        path.unlink()
    with pytest.raises(StateError, match=r"STATE_MISSING: the manifest .* does not exist"):
        open_market(tmp_path)


def test_a_tick_back_where_nobody_has_got_further(tmp_path: Path, undisturbed: dict[str, Any]):
    """A crash before the answers arrive, and then the manifest is lost: what it covered is computed again."""
    run_market(tmp_path, steps=2, end=False)
    assert in_child(run_market, tmp_path, crash=Crash(points.AFTER_THE_MANIFEST)).killed
    last_manifest(tmp_path).unlink()
    (tmp_path / "checkpoint" / "newest.json").unlink()
    run_market(tmp_path)
    check(tmp_path, undisturbed)


def test_a_damaged_manifest_that_is_not_the_last_is_given_up(
    tmp_path: Path, undisturbed: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    run_market(tmp_path, steps=3, end=False)
    oldest = min((tmp_path / "checkpoint" / "manifests").glob("*.json"))
    oldest.write_bytes(oldest.read_bytes()[:-9])
    run_market(tmp_path)
    said = f'an earlier manifest is given up, nothing needs it any more: STATE_DAMAGED: the manifest "{oldest}"'
    assert said in " ".join(caplog.messages)
    check(tmp_path, undisturbed)


def test_spark_that_has_read_further(tmp_path: Path):
    """Spark does not bring again what it has committed: a manifest that does not know of it is not the last."""
    run_market(tmp_path, steps=2, end=False)
    commits = tmp_path / "checkpoint" / "sources" / "bid" / "commits"
    commits.mkdir(parents=True)
    for batch in (0, 1, 2):
        (commits / str(batch)).touch()
    Checkpoint(tmp_path / "checkpoint").open()
    (commits / "3").touch()
    told = r'STATE_BEHIND: .* is behind what Spark has read of stream "bid"\n.* batch 3, and .*2.json knows of batch 2'
    with pytest.raises(StateError, match=told):
        Checkpoint(tmp_path / "checkpoint").open()


def damaged(folder: Path, how: str) -> set[str]:
    """Every segment; and what they were called."""
    names = set()
    for path in (folder / "checkpoint" / "segments").iterdir():
        names.add(path.name)
        if how == "missing":
            path.unlink()
        elif how == "cut short":
            path.write_bytes(path.read_bytes()[:100])
        else:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
    return names


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("missing", "STATE_MISSING", "does not exist"),
        ("cut short", "STATE_DAMAGED", "cannot be read"),
        ("one bit", "STATE_DAMAGED", "the checksum differs"),
    ],
)
def test_a_damaged_segment_is_named(how: str, code: str, told: str, tmp_path: Path):
    run_market(tmp_path, steps=2, end=False)
    names = damaged(tmp_path, how)
    error = in_child(run_market, tmp_path).error
    assert isinstance(error, StateError)
    assert error.code == code
    assert told in str(error)
    assert any(name in str(error) for name in names)


# -- no room ----------------------------------------------------------------------------------------------------------


def run_within(folder: Path, most: int) -> None:
    """No file may be larger than so many bytes: what is, is written in part, and an error follows."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    run_market(folder)


@pytest.mark.parametrize("most", [2_000, 4_000, 10_000])
def test_files_that_cannot_be_written(most: int, tmp_path: Path, undisturbed: dict[str, Any]):
    error = in_child(run_within, tmp_path, most).error
    assert isinstance(error, (StateError, InputError))
    assert error.code in ("STATE_UNWRITABLE", "UNWRITABLE")
    assert str(tmp_path) in str(error)
    run_market(tmp_path)
    check(tmp_path, undisturbed)


def run_until_full(folder: Path, room: int) -> None:
    """A disk with room for so many bytes of state."""
    write, left = Folder._write, room

    def written(self: Folder, name: str, data: Any, *, sync: bool) -> None:
        nonlocal left
        left -= len(memoryview(data))
        if left < 0:
            write(self, name, memoryview(data)[:7], sync=sync)
            raise OSError(errno.ENOSPC, "No space left on device", f"{self}/{name}")
        write(self, name, data, sync=sync)

    Folder._write = written
    run_market(folder)


@pytest.mark.parametrize("room", [10_000, 100_000, 250_000])
def test_a_full_disk(room: int, tmp_path: Path, undisturbed: dict[str, Any]):
    error = in_child(run_until_full, tmp_path, room).error
    assert isinstance(error, StateError)
    assert error.code == "STATE_DISK_FULL"
    assert "Make room and start again" in error.hint
    run_market(tmp_path)
    check(tmp_path, undisturbed)


# -- other queries ----------------------------------------------------------------------------------------------------


def test_a_query_that_changed_is_refused(tmp_path: Path):
    run_market(tmp_path, steps=2, end=False)
    changed = QUERIES["busy"].replace("RANGE 20", "RANGE 21")
    others = {name: sql for name, sql in QUERIES.items() if name != "busy"}
    with open_market(tmp_path, queries=others) as engine:
        with pytest.raises(InputError, match='QUERY_CHANGED: query "busy" is not the one') as caught:
            engine.sql(changed, name="busy").start()
        assert 'engine.drop("busy")' in caught.value.hint
        assert "--restart-query busy" in caught.value.hint
        assert "RANGE 20" in caught.value.detail
        assert "RANGE 21" in caught.value.detail
        engine.drop("busy")
        assert engine.sql(changed, name="busy").start().since == 2
        assert engine.runs["bidders"].since == 0


def test_a_query_goes_on_with_its_plan_though_it_would_be_planned_otherwise_now(tmp_path: Path):
    run_market(tmp_path / "whole")
    run_market(tmp_path / "cut", steps=2, end=False)
    with open_market(tmp_path / "cut", queries={}) as engine:
        engine.sql("SET optimizer = off")  # as another version of the package might
        with engine.held():
            for name, sql in QUERIES.items():
                run = engine.sql(sql, name=name).start(hw.sinks.parquet(tmp_path / "cut" / "answers" / name))
                assert run.since == 0
        for step in range(2, STEPS):
            with engine.held():
                bring(tmp_path / "cut", step)
            engine.run_to_end(end_streams=False)
        engine.run_to_end()
    assert answers(tmp_path / "cut") == answers(tmp_path / "whole")


def test_nothing_runs_until_all_queries_are_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run_market(tmp_path, steps=2, end=False)
    before = state(tmp_path)
    fewer = {name: sql for name, sql in QUERIES.items() if name not in ("quiet", "early")}
    with caplog.at_level(logging.WARNING, "headwater"), open_market(tmp_path, queries=fewer) as engine:
        bring(tmp_path, 2)
        with pytest.raises(InputError, match=r'QUERIES_AWAITED: nothing runs until .* started again: "quiet", "early"'):
            engine.run_to_end()
        engine.sql(QUERIES["early"], name="early").start(hw.sinks.parquet(tmp_path / "answers" / "early"))
        with pytest.raises(InputError, match="QUERIES_AWAITED"):
            engine.run_to_end()
        assert state(tmp_path)["counts"] == before["counts"]
        engine.drop("quiet")
        engine.run_to_end(end_streams=False)
        assert state(tmp_path)["counts"]["bid"]["rows"] > before["counts"]["bid"]["rows"]
    assert "nothing runs until the queries of the checkpoint are started again or dropped" in " ".join(caplog.messages)
    assert "quiet" not in state(tmp_path)["queries"]


def test_a_stopped_query_is_forgotten_at_once(tmp_path: Path):
    """Also if no tick comes after it, and if the process is killed."""
    with open_market(tmp_path) as engine:
        bring(tmp_path, 0)
        engine.run_to_end(end_streams=False)
        engine.runs["quiet"].stop()
    fewer = {name: sql for name, sql in QUERIES.items() if name != "quiet"}
    run_market(tmp_path, queries=fewer, steps=2)
    assert "quiet" not in state(tmp_path)["queries"]


# -- pushes -----------------------------------------------------------------------------------------------------------


def push_all(folder: Path, rows: int) -> None:
    """Row by row, from the first that is not counted yet: a push that was not confirmed may have been committed."""
    with hw.connect(runner="inprocess", shards=2, checkpoint=folder / "checkpoint") as engine:
        engine.sql("CREATE STREAM event (at INT, kind STRING) ORDERED BY at IN ORDER")
        query = engine.sql("SELECT kind, COUNT(*) AS n FROM event WINDOW(RANGE 5) GROUP BY kind", name="kinds")
        query.start(hw.sinks.parquet(folder / "answers" / "kinds"))
        done = engine._core.manifest.counts.get("event", {"rows": 0})["rows"]
        for at in range(done, rows):
            engine.push("event", [{"at": at, "kind": "abc"[at % 3]}])
        engine.run_to_end()


@pytest.mark.parametrize("point", [points.BEFORE_THE_MANIFEST, points.AFTER_THE_MANIFEST, points.AFTER_THE_SINKS])
def test_pushed_rows(point: str, tmp_path: Path):
    push_all(tmp_path / "undisturbed", 8)
    for count in (1, 3, 2, 2):
        assert in_child(push_all, tmp_path / "killed", 8, crash=Crash(point, count)).killed
    push_all(tmp_path / "killed", 8)
    assert answers(tmp_path / "killed") == answers(tmp_path / "undisturbed")
    assert garbage(tmp_path / "killed") == []


def test_many_push_at_once(tmp_path: Path):
    """What waits while a tick runs becomes one tick; each caller hears when its own rows are committed."""
    with hw.connect(runner="inprocess", shards=3, checkpoint=tmp_path / "checkpoint") as engine:
        engine.sql("CREATE STREAM event (at INT, kind STRING) ORDERED BY at DISORDER 1000")
        run = engine.sql("SELECT kind, COUNT(*) AS n FROM event WINDOW(RANGE 2000) GROUP BY kind").start()

        def push(kind: str) -> None:
            for at in range(20):
                engine.push("event", [{"at": at, "kind": kind}])

        threads = [threading.Thread(target=push, args=(kind,)) for kind in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert engine._core.manifest.counts["event"] == {"rows": 80, "late": 0, "bad": 0}
        assert engine._core.manifest.tick <= 80
        engine.run_to_end()
        assert sorted(row["n"] for row in run.snapshot(at=50).rows()) == [20, 20, 20, 20]

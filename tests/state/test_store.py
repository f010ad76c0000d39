"""Segments in files: complete or not there, and a clear error for whatever may have happened to one."""

from __future__ import annotations

import errno
import json
import os
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

from headwater.errors import StateError
from headwater.kernels.checksum import checksum
from headwater.state import store as module
from headwater.state.columns import Columns
from headwater.state.filesystem import Folder
from headwater.state.store import FileStore, Segment


def written(store: FileStore, made: Columns, **about: int) -> Segment:
    """A segment that a manifest has named: it is on disk."""
    segment = store.write(made, **about)
    segment.to_manifest()
    return segment


def columns(rows: int = 5) -> Columns:
    return {
        "low": np.arange(rows, dtype=np.uint64),
        "record": np.arange(2 * rows).reshape(rows, 2),
        "constant": np.broadcast_to(np.array([7]), rows),
        "text": pa.array([f"row {i}" if i % 2 else None for i in range(rows)]),
        "directory": np.arange(3, dtype=np.uint32),
    }


def same(a: Columns, b: Columns) -> bool:
    return a.keys() == b.keys() and all(pa.array(np.ravel(a[n])).equals(pa.array(np.ravel(b[n]))) for n in a)


@pytest.fixture(autouse=True)
def another_process(monkeypatch):
    """Nothing is known of any file, as in a process that has just begun."""
    monkeypatch.setattr(module, "_files", module._Files())


def forget(monkeypatch) -> None:
    monkeypatch.setattr(module, "_files", module._Files())


def reopened(store: FileStore, segment: Segment) -> Segment:
    return store.open(json.loads(json.dumps(segment.to_manifest())))


def test_a_checksum_changes_with_every_bit():
    data = bytearray(range(200)) * 3
    seen = {checksum(data)}
    for place in range(8 * len(data)):
        data[place // 8] ^= 1 << place % 8
        assert checksum(data) not in seen
        data[place // 8] ^= 1 << place % 8
    assert checksum(data) in seen
    assert len({checksum(bytes(n)) for n in range(100)}) == 100
    assert 0 <= checksum(data) < 2**63


@pytest.mark.parametrize("sync", [False, True])
def test_a_segment_is_read_back_as_it_was(tmp_path, monkeypatch, sync):
    store = FileStore(tmp_path / "new" / "folder", sync=sync)
    segment = written(store, columns(), rows=5, least=-3, most=2**62)
    assert same(segment.columns, columns())
    forget(monkeypatch)
    back = reopened(pickle.loads(pickle.dumps(store)), segment)
    assert (back.rows, back.bytes, back.least, back.most) == (5, segment.bytes, -3, 2**62)
    assert same(back.columns, columns())
    assert back.array("constant").strides == (0,)


def test_opening_waits_until_columns_are_asked_for(tmp_path):
    store = FileStore(tmp_path)
    segment = written(store, columns(), rows=5)
    os.unlink(tmp_path / f"{segment.name}.arrow")
    back = reopened(store, segment)
    assert back.rows == 5
    with pytest.raises(StateError, match="does not exist"):
        _ = back.columns


def read_again(path, monkeypatch, change) -> StateError:
    """The error of a segment whose file was changed."""
    store = FileStore(path)
    segment = written(store, columns(1000), rows=1000)
    change(path / f"{segment.name}.arrow")
    forget(monkeypatch)
    with pytest.raises(StateError) as caught:
        _ = reopened(FileStore(path), segment).columns
    error = caught.value
    assert segment.name in error.message
    assert str(path) in error.message
    assert "checkpoint" in error.hint
    return error


def test_a_missing_file(tmp_path, monkeypatch):
    assert read_again(tmp_path, monkeypatch, os.unlink).code == "STATE_MISSING"


@pytest.mark.parametrize("left", [0, 1, 100, 5000])
def test_a_truncated_file(tmp_path, monkeypatch, left):
    error = read_again(tmp_path, monkeypatch, lambda path: os.truncate(path, left))
    assert error.code == "STATE_DAMAGED"


@pytest.mark.parametrize("where", [0, 9, 200, 4000, -20])
def test_a_flipped_bit(tmp_path, monkeypatch, where):
    def flip(path) -> None:
        data = bytearray(path.read_bytes())
        data[where] ^= 1
        path.write_bytes(data)

    error = read_again(tmp_path, monkeypatch, flip)
    assert error.code == "STATE_DAMAGED"
    assert "checksum" in error.detail


def test_a_file_that_is_none_of_ours(tmp_path, monkeypatch):
    """Without a checksum to tell, it is still an error of ours."""
    store = FileStore(tmp_path, check=False)
    segment = written(store, columns(), rows=5)
    (tmp_path / f"{segment.name}.arrow").write_bytes(b"something else")
    forget(monkeypatch)
    with pytest.raises(StateError) as caught:
        _ = reopened(store, segment).columns
    assert caught.value.code == "STATE_DAMAGED"


def test_a_segment_of_another_version(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FORMAT_VERSION", 99)
    segment = written(FileStore(tmp_path), columns(), rows=5)
    monkeypatch.undo()
    forget(monkeypatch)
    with pytest.raises(StateError) as caught:
        _ = reopened(FileStore(tmp_path), segment).columns
    assert caught.value.code == "STATE_VERSION"
    assert "99" in caught.value.message
    assert caught.value.hint


class FullDisk:
    """A file of which only some bytes fit."""

    def __init__(self, file, room: int, number: int) -> None:
        self.file, self.room, self.number = file, room, number

    def __enter__(self):
        return self

    def __exit__(self, *problem) -> None:
        self.file.close()

    def write(self, data) -> int:
        if self.room == 0:
            raise OSError(self.number, os.strerror(self.number))
        written = self.file.write(data[: self.room])
        self.room -= written
        return written


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "STATE_DISK_FULL"), (errno.EDQUOT, "STATE_DISK_FULL"), (errno.EIO, "STATE_UNWRITABLE")],
)
def test_a_full_disk(tmp_path, monkeypatch, number, code):
    store = FileStore(tmp_path)
    kept = written(store, columns(), rows=5)
    opened = open
    monkeypatch.setattr(
        "builtins.open", lambda path, mode, buffering=-1: FullDisk(opened(path, mode, buffering), 100, number)
    )
    with pytest.raises(StateError) as caught:
        written(store, columns(), rows=5)
    monkeypatch.undo()
    assert caught.value.code == code
    assert str(tmp_path) in caught.value.message
    assert os.listdir(tmp_path) == [f"{kept.name}.arrow"], "nothing half-written is left"
    assert same(written(store, columns(), rows=5).columns, columns()), "with room again, it goes on"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StateError) as caught:
        FileStore(tmp_path / "file")
    assert caught.value.code == "STATE_UNWRITABLE"


def test_checksums_are_compared_once_a_process_and_never_by_the_writer(tmp_path, monkeypatch):
    counted = []
    monkeypatch.setattr(module, "checksum", lambda data: counted.append(1) or checksum(data))
    store = FileStore(tmp_path)
    segment = written(store, columns(), rows=5)
    _ = segment.columns
    assert len(counted) == 1
    forget(monkeypatch)
    for _ in range(3):
        _ = reopened(store, segment).columns
        module._files.forget(store.folder, f"{segment.name}.arrow")
    assert len(counted) == 2


def test_only_so_many_files_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_OPEN", 4)
    store = FileStore(tmp_path)
    segments = [written(store, columns(i + 1), rows=i + 1) for i in range(10)]
    for _ in range(2):
        for i, segment in enumerate(segments):
            assert len(segment.array("low")) == i + 1
    assert len(module._files._open) == 4


def test_deleted_files_do_not_stay_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_EVERY", 2)
    store = FileStore(tmp_path)
    first, second = (written(store, columns(), rows=5) for _ in range(2))
    _ = first.columns
    (tmp_path / f"{first.name}.arrow").unlink()
    _ = second.columns
    assert list(module._files._open) == [f"{tmp_path}/{second.name}.arrow"]


def test_the_same_folder_by_another_name_is_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    segment = written(FileStore("state"), columns(), rows=5)
    _ = segment.columns
    monkeypatch.chdir("/")
    assert segment.columns is reopened(FileStore(tmp_path / "x" / ".." / "state"), segment).columns


def test_sweeping_deletes_what_nobody_names(tmp_path):
    store = FileStore(tmp_path)
    kept, dropped = (written(store, columns(), rows=5) for _ in range(2))
    (tmp_path / "other.txt").write_text("not ours")
    assert store.sweep({kept.name}) == 1
    assert sorted(os.listdir(tmp_path)) == sorted(["other.txt", f"{kept.name}.arrow"])
    with pytest.raises(StateError):
        _ = dropped.columns


# -- other file systems ---------------------------------------------------------------------------------------------


def remote(kind: str, tmp_path) -> Folder:
    if kind == "mock":
        return Folder("bucket/state", fs._MockFileSystem())  # type: ignore[attr-defined]
    return Folder("state", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))


@pytest.mark.parametrize("kind", ["mock", "sub-tree"])
def test_a_store_on_another_file_system(kind, tmp_path, monkeypatch):
    folder = remote(kind, tmp_path)
    assert not folder.is_local
    store = FileStore(folder)
    segments = [written(store, columns(i + 1), rows=i + 1) for i in range(3)]
    forget(monkeypatch)
    for i, segment in enumerate(segments):
        assert same(reopened(FileStore(folder), segment).columns, columns(i + 1))
    assert module._files._in_memory > 0
    monkeypatch.setattr(module, "_MOST_IN_MEMORY", 10)
    forget(monkeypatch)
    for segment in segments:
        _ = reopened(store, segment).columns
    assert len(module._files._open) == 1, "what cannot be mapped takes memory, so little of it is kept"
    assert store.sweep({segments[0].name}) == 2
    assert folder.names() == [f"{segments[0].name}.arrow"]
    folder.delete(f"{segments[0].name}.arrow")
    forget(monkeypatch)
    with pytest.raises(StateError) as caught:
        _ = reopened(store, segments[0]).columns
    assert caught.value.code == "STATE_MISSING"


def test_a_damaged_file_on_another_file_system(tmp_path, monkeypatch):
    folder = remote("sub-tree", tmp_path)
    segment = written(FileStore(folder), columns(), rows=5)
    (tmp_path / "state" / f"{segment.name}.arrow").write_bytes(b"something else")
    forget(monkeypatch)
    with pytest.raises(StateError) as caught:
        _ = reopened(FileStore(folder), segment).columns
    assert caught.value.code == "STATE_DAMAGED"

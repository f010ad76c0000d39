"""A folder on any file system: local paths, URIs, and file systems that no URI names."""

from __future__ import annotations

import pickle

import pytest
from pyarrow import fs

from headwater.errors import StateError
from headwater.state.filesystem import Folder


@pytest.fixture(params=["path", "uri", "sub-tree", "mock"])
def folder(request, tmp_path) -> Folder:
    made = {
        "path": lambda: Folder(tmp_path / "a"),
        "uri": lambda: Folder((tmp_path / "a b").as_uri()),
        "sub-tree": lambda: Folder("a", fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())),
        "mock": lambda: Folder("a", fs._MockFileSystem()),  # type: ignore[attr-defined]
    }[request.param]()
    made.make()
    return made


def test_files_come_and_go(folder):
    assert folder.names() == []
    folder.write("one", b"first")
    assert folder.read("one").to_pybytes() == b"first"
    folder.replace("one", b"second", sync=True)
    folder.replace("two", b"")
    assert folder.read("one").to_pybytes() == b"second"
    assert folder.names() == ["one", "two"]
    folder.delete("one")
    folder.delete("one")
    assert folder.names() == ["two"]
    with pytest.raises(FileNotFoundError):
        folder.read("one")


def test_folders_inside(folder):
    inner = folder / "inner"
    assert inner.names() == []
    inner.make()
    inner.write("file", b"content")
    assert folder.names() == ["inner"]
    assert str(inner) == f"{folder}/inner"


def test_only_local_files_are_mapped(tmp_path):
    assert Folder(tmp_path).is_local
    assert Folder(tmp_path.as_uri()).is_local
    assert not Folder("s3://bucket/state").is_local
    assert not Folder(str(tmp_path), fs.LocalFileSystem()).is_local


def test_a_folder_goes_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Folder("here")
    folder.make()
    folder.write("file", b"content")
    sent = pickle.dumps(folder)
    monkeypatch.chdir("/")
    assert pickle.loads(sent).read("file").to_pybytes() == b"content"


def test_a_new_file_does_not_replace_another(tmp_path):
    folder = Folder(tmp_path)
    folder.write("file", b"content")
    with pytest.raises(StateError) as caught:
        folder.write("file", b"other")
    assert caught.value.code == "STATE_UNWRITABLE"
    assert folder.read("file").to_pybytes() == b"content"


def test_a_place_that_nobody_knows():
    with pytest.raises(StateError) as caught:
        Folder("nowhere://x").names()
    assert caught.value.code == "STATE_PLACE"
    assert "nowhere://x" in caught.value.message

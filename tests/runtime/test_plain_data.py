"""What tasks and the driver tell each other: the same after the way, and nothing but plain data."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater
from headwater.backends.spark.tasks import Told
from headwater.clock.seen import Seen
from headwater.errors import StateError
from headwater.model.delta import Delta
from headwater.model.schema import Schema
from headwater.runtime import bundles
from headwater.runtime.bundles import Bundle, pack, unpack
from headwater.runtime.plain_data import decode, encode
from headwater.runtime.sender import SenderOutput
from headwater.runtime.stage import StageOutput, Worked
from headwater.sinks.base import Staged

SEEN = Seen("p", 5, 1, 3, counted=((1, 2, 3),), syncs=((1, 2),))


@pytest.mark.parametrize(
    "told",
    [
        Told(sender=SenderOutput()),
        Told(
            sender=SenderOutput(
                seen={"s": (SEEN, Seen("", 1, 1, 1))},
                staged={"q": Staged(2, b"\x00\xff", None)},
                worked={"k": Worked(1, 2, 0.5)},
                rows={"s": np.int64(3)},  # type: ignore[dict-item]
                diverted={"late": [Staged(1, None, "/staged/x")]},
            )
        ),
        Told(stage=StageOutput(1, 0, records={"k": {"state": {"segments": [{"name": "a"}]}, "heard": [1, 2]}})),
    ],
)
def test_what_a_task_tells_arrives_as_it_is(told: Told):
    assert decode(Told, encode(told)) == told


def test_a_bundle_arrives_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundles, "_BY_FILE", 1)
    delta = Delta.from_batch(
        pa.record_batch({"x": pa.array([1, 2], pa.int64()), "_start": [1, 2], "_end": [3, 4], "_weight": [1, -1]})
    )
    bundle = Bundle({7: delta}, {7: (2**61, 2**62)}, {"s": (SEEN,)})
    for folder in (None, str(tmp_path)):
        found = unpack(pa.py_buffer(pack(bundle, folder)))
        assert found.frontiers == bundle.frontiers
        assert found.seen == bundle.seen
        assert len({*found.seen["s"]}) == 1, "sightings are compared by value"
        assert found.deltas[7].to_batch().equals(delta.to_batch())
    assert delta.schema == Schema.of(x="BIGINT")


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (Told, b"\x80\x04N."),
        (Told, b"[1]"),
        (Told, b'{"os": 1}'),
        (int, b"true"),
        (int, b'"1"'),
        (tuple[int, str], b"[1]"),
        (dict[int, str], b'{"a": "b"}'),
        (bytes, b'"?"'),
        (Seen, b'["p", 1]'),
    ],
)
def test_anything_else_is_refused(type_: Any, data: bytes):
    with pytest.raises(StateError) as told:
        decode(type_, data)
    assert told.value.code == "NOT_OUR_DATA"


def test_what_is_not_plain_cannot_be_told():
    with pytest.raises(TypeError, match="cannot be told"):
        encode(object())


UNSAFE = re.compile(
    r"\b(pickle|cloudpickle|marshal|shelve|dill|joblib|yaml)\b.*\b(load|loads|dump|dumps|Unpickler)\b"
    r"|\b(eval|exec|compile)\((?!\s*\))|\b(import_module|__import__)\(|allow_pickle"
)
MAY = {
    "model/functions.py": 1,  # what CREATE FUNCTION names
    "runtime/points.py": 1,  # a variable of the environment, for tests
    "backends/spark/java.py": 1,
    "backends/spark/tasks.py": 1,  # the graph, from the driver to its tasks
    "backends/spark/ship.py": 2,  # from the driver to its tasks: the text of a module of ours, the graph
    "backends/spark/unpack.py": 1,  # this package, sent to workers
    "result.py": 2,
    "__init__.py": 2,
}


def test_code_comes_from_nowhere_else():
    """Whoever adds a place must say here what it reads, and in SECURITY.md who can write that."""
    package = Path(headwater.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        lines = [line for line in path.read_text().splitlines() if UNSAFE.search(line.partition("#")[0])]
        lines = [line for line in lines if "re.compile(" not in line and "self.eval(" not in line]
        if lines:
            found[path.relative_to(package).as_posix()] = len(lines)
    assert found == MAY


def test_an_old_pickle_in_the_exchange_folder_is_no_bundle():
    header = pickle.dumps(([], [], {}, {}))
    data = len(header).to_bytes(8, "little") + header
    with pytest.raises(StateError):
        unpack(pa.py_buffer(b"\0" + data))

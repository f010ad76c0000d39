"""Change events of databases: signed images, or the last state of each key."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.model.time import BEGINNING
from headwater.sources.base import Piece
from headwater.sources.connectors import make_source
from headwater.sources.intake import Intake, Taken
from headwater.sources.memory import as_table

SECOND = 1_000_000


def stream_of(text: str) -> Stream:
    found = bind_script(text).catalog.get("t")
    assert isinstance(found, Stream)
    return found


KEYLESS = stream_of(
    "CREATE TABLE t (id INT NOT NULL, v STRING) SOURCE push(changes => 'debezium', malformed => 'divert')"
)
KEYED = stream_of(
    "CREATE TABLE t (id INT PRIMARY KEY, v STRING) SOURCE push(changes => 'debezium', malformed => 'divert')"
)


def take(stream: Stream, *events: dict) -> Taken:
    source = make_source(stream, base_folder=Path())
    rows = as_table(list(events), stream.brought, stream.optional).to_batches()[0]
    return Intake.of(stream, source).take(Piece(rows, where="here"), BEGINNING)


def row(id_: int | None, v: str | None = None) -> dict:
    return {"id": id_, "v": v}


def reasons(taken: Taken) -> list[str]:
    return taken.bad.reason.to_pylist()


def test_without_a_key_images_are_signed():
    taken = take(
        KEYLESS,
        {"op": "c", "after": row(1, "a"), "ts_ms": 1_000},
        {"op": "u", "before": row(1, "a"), "after": row(1, "b"), "ts_ms": 2_000},
        {"op": "d", "before": row(1, "b"), "ts_ms": 3_000},
        {"op": "r", "after": row(2), "ts_ms": 500},
    )
    assert sorted(taken.delta.rows(), key=str) == sorted(
        [
            ((1, "a", 1), SECOND, SECOND + 1, 1),
            ((1, "a", -1), 2 * SECOND, 2 * SECOND + 1, 1),
            ((1, "b", 1), 2 * SECOND, 2 * SECOND + 1, 1),
            ((1, "b", -1), 3 * SECOND, 3 * SECOND + 1, 1),
            ((2, None, 1), SECOND // 2, SECOND // 2 + 1, 1),
        ],
        key=str,
    )


def test_with_a_key_only_the_new_state_is_needed():
    taken = take(
        KEYED,
        {"op": "c", "after": row(1, "a"), "ts_ms": 1_000},
        {"op": "u", "before": None, "after": row(1, "b"), "ts_ms": 2_000, "source": {"lsn": 7}},
        {"op": "d", "before": row(1), "ts_ms": 3_000},
    )
    assert [r[0] for r in taken.delta.rows()] == [(0, 1, "a", False), (7, 1, "b", False), (0, 1, None, True)]


def test_a_row_that_changes_its_key_leaves_its_old_place():
    taken = take(KEYED, {"op": "u", "before": row(1, "a"), "after": row(2, "a"), "ts_ms": 1})
    assert [r[0] for r in taken.delta.rows()] == [(0, 1, "a", True), (0, 2, "a", False)]


def test_of_changes_of_a_key_at_one_instant_the_last_one_counts():
    taken = take(KEYED, *({"op": "u", "after": row(1, v), "ts_ms": 1} for v in "zya"))
    assert [r[0] for r in taken.delta.rows()] == [(0, 1, "a", False)]


@pytest.mark.parametrize(
    ("times", "instant"),
    [
        ({"ts_ms": 5}, 5_000),
        ({"ts_ms": 5, "ts_us": 5_001}, 5_001),
        ({"ts_ms": 5, "source": {"ts_ms": 4}}, 4_000),
        ({"ts_ms": 5, "source": {"ts_ms": 4, "ts_us": 4_321}}, 4_321),
        ({"ts_ms": -1}, -1_000),
    ],
)
def test_the_time_of_a_change_is_the_databases_own_if_it_tells(times: dict, instant: int):
    assert take(KEYLESS, {"op": "c", "after": row(1), **times}).delta.start.tolist() == [instant]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"after": row(1), "ts_ms": 1}, 'the event has no "op"'),
        ({"op": "x", "after": row(1), "ts_ms": 1}, 'the event has the "op" x, which is none of c, r, u and d'),
        ({"op": "t", "ts_ms": 1}, 'the event has the "op" t, which is none of c, r, u and d'),
        ({"op": "c", "ts_ms": 1}, 'the event has no "after"'),
        ({"op": "u", "after": row(1), "ts_ms": 1}, 'the event has no "before"'),
        ({"op": "d", "ts_ms": 1}, 'the event has no "before"'),
        ({"op": "c", "after": row(1)}, "the event has no time: no ts_ms or ts_us of its own or of its source"),
        ({"op": "c", "after": row(1), "ts_ms": 2**62}, "the time of the event is out of range"),
        ({"op": "c", "after": row(None, "a"), "ts_ms": 1}, 'column "id" is NOT NULL'),
    ],
)
def test_malformed_events_are_bad_rows(event: dict, reason: str):
    good = {"op": "c", "before": None, "after": row(9), "ts_ms": 9}
    taken = take(KEYLESS, event, good)
    assert reasons(taken) == [reason]
    assert taken.delta.rows() == [((9, None, 1), 9_000, 9_001, 1)]


def test_a_deletion_without_its_key_is_malformed():
    assert reasons(take(KEYED, {"op": "d", "before": row(None), "ts_ms": 1})) == ['column "id" is NOT NULL']
    assert reasons(take(KEYED, {"op": "d", "ts_ms": 1})) == ['the event has no "before"']


def test_rows_that_are_no_events_at_all():
    rows = pa.RecordBatch.from_pydict({"id": [1], "v": ["a"]})
    taken = Intake.of(KEYLESS, make_source(KEYLESS, base_folder=Path())).take(Piece(rows), BEGINNING)
    assert reasons(taken) == ['these are no change events: "op", "before", "after" missing; the columns are id, v']


ORDERED = "CREATE TABLE t (id INT, at {}) SOURCE push(changes => 'debezium', malformed => 'divert') ORDERED BY at"


def test_a_column_of_the_row_may_be_the_time_but_not_of_a_deletion():
    stamped = stream_of(ORDERED.format("TIMESTAMP"))

    def events(at: object) -> list[dict]:
        return [
            {"op": "c", "after": {"id": 1, "at": at}, "ts_ms": 9},
            {"op": "d", "before": {"id": 1, "at": at}, "ts_ms": 9},
        ]

    moment = datetime(1970, 1, 1) + timedelta(milliseconds=7)
    assert sorted(take(stamped, *events(moment)).delta.start.tolist()) == [7_000, 9_000]
    numbered = take(stream_of(ORDERED.format("BIGINT")), *events(7_000))
    assert numbered.delta.start.tolist() == [7_000]
    assert reasons(numbered) == ['a deletion has no time in "at"']


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [False, True])
def test_events_come_from_lines_of_json(wrapped: bool, tmp_path: Path):
    """Bare, and as Kafka Connect writes them, with their schema beside them."""
    events = [
        {"before": None, "after": row(1, "a"), "source": {"ts_ms": 1, "db": "shop"}, "op": "c", "ts_ms": 2, "more": []},
        {"before": row(1, "a"), "after": row(1, "b"), "source": {"ts_ms": 3}, "op": "u", "ts_ms": 4},
        {"before": row(1, "b"), "after": None, "source": {"ts_ms": 5}, "op": "d", "ts_ms": 6},
    ]
    lines = [{"schema": {"type": "struct"}, "payload": e} if wrapped else e for e in events]
    (tmp_path / "1.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stream = stream_of(f"CREATE TABLE t (id INT, v STRING) SOURCE json('{tmp_path}', changes => 'debezium')")
    source = make_source(stream, base_folder=tmp_path)
    assert source.reader is not None
    pieces = [piece for split in source.poll(None, 100).splits for piece in source.reader.read(split)]
    taken = [Intake.of(stream, source).take(piece, BEGINNING) for piece in pieces]
    found = [r for t in taken for r in t.delta.rows()]
    assert sorted((r[0], r[1]) for r in found) == [
        ((1, "a", -1), 3_000),
        ((1, "a", 1), 1_000),
        ((1, "b", -1), 5_000),
        ((1, "b", 1), 3_000),
    ]

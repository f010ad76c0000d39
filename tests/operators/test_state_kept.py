"""Every operator's state can be saved, read back, and spread over other shards, in mid-run."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import StateError
from headwater.model.delta import Delta, shard_of
from headwater.model.history import History
from headwater.model.identity import identify
from headwater.model.schema import Field, Schema
from headwater.model.time import INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.aggregates.aggregate import AggregateOperator, Call
from headwater.operators.base import Operator
from headwater.operators.joins.join import JoinOperator
from headwater.operators.joins.outer_join import OuterJoinOperator, SemiJoinOperator
from headwater.operators.ranking.sort_order import SortColumn
from headwater.operators.ranking.top_k import TopKOperator
from headwater.operators.rows.constant import ConstantOperator
from headwater.operators.rows.filter import FilterOperator
from headwater.operators.sweeps.count_sweep import CountSweepOperator
from headwater.operators.waiting.align import AlignOperator
from headwater.operators.windows.frame_values import FrameCall
from headwater.operators.windows.frames import FramesOperator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.operators.windows.session_window import SessionWindowOperator
from headwater.state.manifest import state_segments
from headwater.state.store import FileStore, MemoryStore
from headwater.testing.cases import OPERATORS, fresh, operator_cases, scaled
from headwater.testing.checks import check_cases
from headwater.testing.expression_text import bind_text

STREAMS = 3
ROW = Schema((Field("k", pa.int64()), Field("name", pa.string()), Field("x", pa.float64())))
OTHER = Schema((Field("r", pa.int64()), Field("title", pa.string())))
CALLS = [
    Call("COUNT", "n", pa.int64()),
    Call("SUM", "total", pa.float64(), "x"),
    Call("MEDIAN", "middle", pa.float64(), "x"),
]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restarted_run_is_as_good_as_an_undisturbed_one(name: str):
    for batch in islice(operator_cases(name, 7_000_000), scaled(1)):
        check_cases(batch[:STREAMS], kinds=["restarted"])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_restarted_runs_at_length(name: str):
    for batch in islice(operator_cases(name, fresh(8_000_000)), scaled(10)):
        check_cases(batch, kinds=["restarted"])


FRAMES = [
    FrameCall("SUM", "sum", pa.float64(), "x", first=3),
    FrameCall("MIN", "least", pa.string(), "name", first=2, last=1),
    FrameCall("AVG", "mean", pa.float64(), "x"),
    FrameCall("MAX", "most", pa.string(), "name"),
    FrameCall("NTH_VALUE", "first", pa.string(), "name", nth=1),
]


def operators() -> dict[str, Operator]:
    keys = [("k", "r")]
    return {
        "join": JoinOperator(ROW, OTHER, keys),
        "outer join": OuterJoinOperator(ROW, OTHER, keys, kind="full"),
        "outer join, wide key": OuterJoinOperator(ROW, OTHER, [("k", "r"), ("name", "title")], kind="left"),
        "anti join": SemiJoinOperator(ROW, OTHER, keys, kind="anti"),
        "anti join, one column twice": SemiJoinOperator(
            Schema((*ROW.fields, Field("k2", pa.int64()))), OTHER, [("k", "r"), ("k2", "r")], kind="anti"
        ),
        "align": AlignOperator(ROW),
        "distinct": CountSweepOperator(ROW, "distinct"),
        "held for long": CountSweepOperator(ROW, "distinct", longest=50),
        "aggregate": AggregateOperator([ROW], ["k"], CALLS),
        "extremes": AggregateOperator([ROW], ["name"], [Call("MAX", "most", pa.float64(), "x")], revisable=False),
        "row window": RowWindowOperator(ROW, 3, partition=["name"], speculative=False),
        "session window": SessionWindowOperator(
            ROW, 20, ["k"], start="from", end="to", time=pa.int64(), speculative=False
        ),
        "frames over a window": FramesOperator(ROW, FRAMES, ["k"], speculative=False),
        "frames over a window, speculative": FramesOperator(ROW, FRAMES, ["name"], speculative=True),
        "top-k": TopKOperator(ROW, [SortColumn("x")], 2, partition=["k"]),
    }


def rows(schema: Schema, rng: np.random.Generator, start: int, count: int, *, instants: bool) -> Delta:
    columns = []
    for field in schema:
        number = rng.integers(0, 2000, count)
        values = [f"row {n % 500}" for n in number] if field.type == pa.string() else number
        columns.append(pa.array(values, field.type))
    at = np.sort(rng.integers(start, start + 100, count))
    end = at + (1 if instants else rng.integers(1, 200, count))
    return Delta(schema, columns, at, end, np.ones(count, np.int64))


def ticks(name: str, operator: Operator, count: int, *, of: int = 100):
    """Deltas and frontiers, and the end of time."""
    rng = np.random.default_rng(4)
    first = Schema((*ROW.fields, Field("k2", pa.int64()))) if "twice" in name else ROW
    schemas = (first, OTHER)[: operator.arity]
    for i in range(count):
        deltas = tuple(rows(s, rng, i * 100, of, instants="window" in name) for s in schemas)
        yield deltas, (i * 100,) * operator.arity
    yield tuple(Delta.empty(s) for s in schemas), (INFINITY,) * operator.arity


def split(operator: Operator, deltas: tuple[Delta, ...], shards: int) -> list[tuple[Delta, ...]]:
    routes = [d.schema.names if by == ("*",) else by for d, by in zip(deltas, operator.routing(), strict=True)]
    parts = [d.split(by or (), shards) for d, by in zip(deltas, routes, strict=True)]
    return list(zip(*parts, strict=True))


@pytest.mark.parametrize("name", operators())
def test_shards_come_and_go_in_mid_run(name: str, tmp_path):
    """From one to five shards and back: the answer is that of one shard, and every row is where later ones will go."""
    operator = operators()[name]
    alone = operator.new_state(MemoryStore())
    expected = [operator.step(alone, *tick).delta for tick in ticks(name, operator, 8)]
    states = [operator.new_state(FileStore(tmp_path))]
    answer: list[Delta] = []
    validator = StreamValidator(operator.schema)
    for i, (deltas, frontiers) in enumerate(ticks(name, operator, 8)):
        parts = split(operator, deltas, len(states))
        steps = [operator.step(state, part, frontiers) for state, part in zip(states, parts, strict=True)]
        answer += [step.delta for step in steps]
        together = Delta.concat(operator.schema, [step.delta for step in steps])
        validator.check_delta(together, min(step.frontier for step in steps))  # what is held back was not forgotten
        kept = sum(operator.buffered(state).rows for state in states)
        store, shards = FileStore(tmp_path), (1, 3, 5, 2, 4)[i % 5]
        states = operator.reshard([operator.restore(operator.save(s), store) for s in states], shards, store)
        assert len(states) == shards
        # Rows that took each other away are gone sooner in smaller segments, and later in larger ones.
        assert 0.5 * kept <= sum(operator.buffered(state).rows for state in states) <= 2 * kept
    assert History.of(operator.schema, answer) == History.of(operator.schema, expected)
    assert not list(state_segments([operator.save(state) for state in states]))


@pytest.mark.parametrize("name", operators())
def test_a_manifest_is_as_long_as_there_are_segments(name: str, tmp_path):
    """However much is kept, and restoring opens no file."""
    operator = operators()[name]
    for of in (20, 4000):
        store = FileStore(tmp_path / str(of))
        state = operator.new_state(store)
        for deltas, frontiers in list(ticks(name, operator, 6, of=of))[:-1]:
            operator.step(state, deltas, frontiers)
        text = json.dumps(operator.save(state))
        names = list(state_segments(json.loads(text)))
        assert sorted(names) == sorted(segment.name for segment in state.segments())
        assert len(text) <= 1500 + 200 * len(names)
        store.sweep(set())
        back = operator.restore(json.loads(text), store)
        assert operator.buffered(back) == operator.buffered(state)
        assert operator.save(back) == json.loads(text)


def test_every_row_is_in_the_shard_of_its_routing_columns(tmp_path):
    operator = JoinOperator(ROW, OTHER, [("k", "r")])
    states = [operator.new_state(FileStore(tmp_path))]
    for deltas, frontiers in list(ticks("join", operator, 3))[:-1]:
        operator.step(states[0], deltas, frontiers)
    names = identify([pa.array(np.arange(2000))], 2000)
    for shard, state in enumerate(operator.reshard(states, 3, FileStore(tmp_path))):
        for side in state.sides:
            query, _ = side.probe(names, ["weight"])
            assert len(query)
            assert set(shard_of(names, 3)[query]) == {shard}


def test_operators_without_state_or_columns_to_route_by():
    rows_of_constant = ConstantOperator(Schema((Field("a", pa.int64()),)), [(1,)])
    store = MemoryStore()
    state = rows_of_constant.new_state(store)
    assert len(rows_of_constant.step(state, (), ()).delta) == 1
    back = rows_of_constant.restore(rows_of_constant.save(state), store)
    assert len(rows_of_constant.step(back, (), ()).delta) == 0
    first, second = rows_of_constant.reshard([state], 2, store)
    assert first is state
    assert not second.sent
    filtered = FilterOperator(ROW, bind_text('"k" > 1', ROW))
    assert filtered.save(None) == {}
    assert filtered.restore({}, store) is None
    assert filtered.reshard([None, None], 3, store) == [None, None, None]
    product = JoinOperator(ROW, OTHER, [])
    whole = product.new_state(store)
    assert product.reshard([whole], 3, store)[0] is whole


def test_shards_that_have_come_unequally_far_cannot_be_joined():
    operator = CountSweepOperator(ROW, "distinct", speculative=True)
    states = [operator.new_state(MemoryStore()) for _ in range(2)]
    for deltas, frontiers in list(ticks("distinct", operator, 1))[:-1]:
        operator.step(states[0], deltas, frontiers)
    with pytest.raises(StateError) as caught:
        operator.reshard(states, 3, MemoryStore())
    assert caught.value.code == "STATE_UNEVEN"

"""Row windows: tables of the thesis, and random streams against the definition."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from headwater.algebra.nodes import RowWindow, Source
from headwater.errors import StreamError
from headwater.model.delta import Delta
from headwater.model.history import History, canonical_order
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.windows.row_window import RowWindowOperator
from headwater.runtime.stepping import by_hand
from headwater.state.store import FileStore, MemoryStore

ONE = Schema.of(x="STRING")
PAIR = Schema.of(k="BIGINT", v="STRING")
WIDE = Schema.of(v="STRING", k="STRING", j="INT")
NUMBERS = Schema.of(v="DOUBLE", k="DATE", w="TIMESTAMP")
MODES = {
    "strong": {"speculative": False},
    "open": {"speculative": False, "hold": False},
    "speculative": {"speculative": True},
}


def chronons(schema, elements):
    """A delta of (row, instant) or (row, instant, weight)."""
    return Delta.from_rows(schema, [(e[0], e[1], e[1] + 1, e[2] if len(e) > 2 else 1) for e in elements])


def run(operator, ticks):
    """The history that comes out of the (delta, frontier) ticks."""
    state = operator.new_state(MemoryStore())
    deltas = [operator.step(state, (delta,), (frontier,)).delta for delta, frontier in ticks]
    return History.of(operator.schema, deltas)


def window_at(elements, instant, size, slide, keys):
    """Eq. 17.2, ties in the order of their values: what the window over {(row, instant): n} shows at an instant."""
    shown: Counter = Counter()
    partitions: dict = {}
    for (row, at), n in elements.items():
        if at <= instant:
            queue = partitions.setdefault(tuple(row[i] for i in keys), [])
            queue += [(at, canonical_order(row), row)] * n
    for queue in partitions.values():
        queue.sort()
        last = len(queue) // slide * slide
        shown.update(row for _, _, row in queue[max(last - size, 0) : last])
    return shown


def stamped(text):
    return [((x[0],), int(x[1:])) for x in text.split()]


S3 = stamped("b1 a3 c4 a7 b10")
LOGICAL_S3 = stamped("c1 a2 b3 b4 a5 c6")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("size", "slide", "partition", "expected"),
    [
        (1, 1, [], "b[1,3) a[3,4) c[4,7) a[7,10) b[10,∞)"),  # Table 11.12
        (1, 1, ["x"], "b[1,∞) a[3,∞) c[4,∞)"),  # Table 11.13, coalesced
        (2, 2, [], "b[3,7) a[3,∞) c[7,∞)"),  # Table 17.2: the last b is never shown
        (1, 2, [], "a[3,∞)"),
        (INFINITY, 1, [], "b[1,10) a[3,7) c[4,∞) a[7,∞)2 b[10,∞)2"),
        (INFINITY, 2, [], "b[3,∞) a[3,7) c[7,∞) a[7,∞)2"),
    ],
)
def test_physical_tables(mode, size, slide, partition, expected):
    operator = RowWindowOperator(ONE, size, slide, partition, **MODES[mode])
    at_once = [(chronons(ONE, S3), INFINITY)]
    one_by_one = [*((chronons(ONE, [e]), e[1]) for e in S3), (Delta.empty(ONE), INFINITY)]
    for ticks in (at_once, one_by_one):
        rows = run(operator, ticks).rows()
        shown = {f"{r[0]}[{s},{'∞' if e == INFINITY else e}){n if n > 1 else ''}" for r, s, e, n in rows}
        assert shown == set(expected.split())


def test_a_group_without_later_elements_lasts():
    operator = RowWindowOperator(ONE, 1, 1, ["x"], speculative=False)
    state = operator.new_state(MemoryStore())
    step = operator.step(state, (chronons(ONE, S3),), (11,))  # Table 11.13
    assert sorted(step.delta.rows()) == [(("a",), 3, 7, 1), (("b",), 1, 10, 1)]
    assert step.frontier == 4  # c is held since then


@pytest.mark.parametrize(
    ("size", "slide", "expected"),
    [
        (3, 1, ["c", "ac", "abc", "abb", "abb", "abc", "abc"]),  # Table 8.12
        (2, 2, ["", "ac", "ac", "bb", "bb", "ac", "ac"]),  # 13.1
        (3, 2, ["", "ac", "ac", "abb", "abb", "abc", "abc"]),
    ],
)
def test_logical_tables(size, slide, expected):
    operator = RowWindowOperator(ONE, size, slide, speculative=False)
    history = run(operator, [(chronons(ONE, LOGICAL_S3), INFINITY)])
    shown = ["".join(sorted(x for (x,) in history.snapshot(t).elements())) for t in range(1, 8)]
    assert shown == expected


def test_partitions_of_table_8_13():
    schema = Schema.of(x="STRING", g="INT")
    elements = [((x, 0 if x in "ac" else 1), t) for (x,), t in LOGICAL_S3]
    operator = RowWindowOperator(schema, 1, 1, ["g"], speculative=False)
    history = run(operator, [(chronons(schema, elements), INFINITY)])
    shown = ["".join(sorted(x for x, _ in history.snapshot(t))) for t in range(1, 8)]
    assert shown == ["c", "a", "ab", "ab", "ab", "bc", "bc"]


# -- random streams ---------------------------------------------------------------------------------------------------

TEXT = ["a", "b", None, "ab"]


def element(rng, schema):
    if schema is ONE:
        return (rng.choice(TEXT),)
    if schema is PAIR:
        return rng.choice([1, 2, None, -5]), rng.choice(TEXT)
    if schema is WIDE:
        return rng.choice(TEXT), rng.choice(["p", "q", None]), rng.choice([1, 2])
    times = chronons(NUMBERS, [((0.5, day, second), 0) for day in (1, 20000) for second in (0, 10**15)])
    _, day, second = rng.choice(times.rows())[0]
    return rng.choice([0.0, 1.5, None, float("inf")]), day, rng.choice([second, second, None])


def stream(rng, schema):
    """Ticks of ([(row, instant, weight)], frontier): ties, duplicates, weights, removals of what is not final."""
    frontier, live = BEGINNING, Counter()
    base = rng.choice([-3, 0, 1000])
    for _ in range(rng.randint(1, 7)):
        low = base if frontier == BEGINNING else frontier
        news = []
        for _ in range(rng.randint(0, 8)):
            news.append((element(rng, schema), low + rng.randint(0, 6), rng.choice([1, 1, 1, 2])))
        for (row, at), n in live.items():
            if n and at >= low and rng.random() < 0.4:
                news.append((row, at, -rng.randint(1, n)))
        for row, at, weight in news:
            live[row, at] += weight
        rng.shuffle(news)
        if rng.random() < 0.7:
            frontier = max(low, low + rng.randint(-2, 7))
        yield news, frontier
    yield [], INFINITY


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("files", [False, True], ids=["memory", "files"])
@pytest.mark.parametrize(
    ("schema", "partition"),
    [(ONE, []), (PAIR, ["k"]), (WIDE, ["k", "j"]), (WIDE, ["k"]), (NUMBERS, ["k"])],
    ids=["all", "int", "pair", "text", "numbers"],
)
def test_random_streams_agree_with_the_definition(mode, files, schema, partition, tmp_path: Path):
    rng = random.Random(f"{mode}{files}{partition}")
    keys = [schema.index(n) for n in partition]
    for case in range(3 if files else 16):
        size, slide = rng.choice([1, 1, 2, 3, 5, 12]), rng.choice([1, 1, 2, 3, 7])
        operator = RowWindowOperator(schema, size, slide, partition, **MODES[mode])
        state = operator.new_state(FileStore(tmp_path / str(case)) if files else MemoryStore())
        checker, elements, out = StreamValidator(schema), Counter(), []
        for news, frontier in stream(rng, schema):
            for row, at, weight in news:
                elements[row, at] += weight
            step = operator.step(state, (chronons(schema, news),), (frontier,))
            checker.check_delta(step.delta, step.frontier)
            assert step.frontier == frontier if mode != "strong" else step.frontier <= frontier
            assert mode != "strong" or (step.delta.weight > 0).all()
            out.append(step.delta)
            history = History.of(schema, out)
            for instant in {at for (_, at), n in elements.items() if n} | {at + 1 for _, at in elements}:
                if instant < step.frontier or mode == "speculative":
                    assert history.snapshot(instant) == window_at(elements, instant, size, slide, keys)
        assert (state.rows, state.bytes, state.segments()) == (0, 0, [])


def test_many_ticks_merge_and_expire_the_queues():
    rng = random.Random(11)
    for mode, size, slide in [("strong", 3, 1), ("strong", 4, 3), ("open", 3, 1), ("speculative", 2, 2)]:
        operator = RowWindowOperator(PAIR, size, slide, ["k"], **MODES[mode])
        state = operator.new_state(MemoryStore())
        elements, out, kept = Counter(), [], 0
        for tick in range(60):
            news = [((rng.randint(0, 30), rng.choice("abc")), 5 * tick + rng.randint(0, 9)) for _ in range(20)]
            elements.update(news)
            out.append(operator.step(state, (chronons(PAIR, news),), (5 * tick + 5,)).delta)
            kept = max(kept, state.rows)
        out.append(operator.step(state, (Delta.empty(PAIR),), (INFINITY,)).delta)
        history = History.of(PAIR, out)
        for instant in range(0, 310, 7):
            assert history.snapshot(instant) == window_at(elements, instant, size, slide, [0])
        assert kept <= 31 * (size + slide - 1) + 40


def test_the_frontier_waits_for_the_oldest_row_shown():
    operator = RowWindowOperator(PAIR, 2, 1, ["k"], speculative=False)
    state = operator.new_state(MemoryStore())

    def tick(elements, frontier):
        return operator.step(state, (chronons(PAIR, [((k, "x"), t) for k, t in elements]),), (frontier,)).frontier

    assert tick([], 5) == 5
    assert tick([(1, 7), (2, 9)], 8) == 7
    assert tick([(1, 8)], 10) == 7
    assert tick([(1, 12)], 13) == 8
    assert tick([(1, 14)], 15) == 9  # now 2 holds
    assert tick([(2, 15), (2, 20)], 20) == 9
    assert tick([], 21) == 12
    assert tick([], INFINITY) == INFINITY


def test_equal_times_never_depend_on_arrival():
    rows = [(("b",), 1), (("a",), 1), (("c",), 1), (("a",), 1), ((None,), 1)]
    results = []
    for order in (rows, rows[::-1]):
        ticks = [*((chronons(ONE, [e]), BEGINNING) for e in order), (Delta.empty(ONE), INFINITY)]
        results += [run(RowWindowOperator(ONE, 2, 1, **mode), ticks) for mode in MODES.values()]
    assert results[0].snapshot(1) == {("b",): 1, ("c",): 1}
    assert all(r == results[0] for r in results)


# -- elements that never end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speculative", [False, True])
@pytest.mark.parametrize("longest", [3, 10**12])
def test_rows_that_last_are_counted_at_every_instant(speculative: bool, longest: int):
    """What is shown a while after a change is shown until the next one, however many instants that takes."""
    rng = random.Random(longest)
    for _ in range(20):
        size, partition, horizon = rng.randint(1, 7), rng.choice([(), ("k",)]), 60
        plan = RowWindow(Source("s", PAIR), size, 1, partition)
        runner = by_hand({"q": plan}, speculative=speculative)
        out, elements = [], Counter()
        for low, frontier in ((0, 6), (6, 9), (9, INFINITY)):
            rows = []
            for _ in range(rng.randint(0, 3)):
                row, start = (rng.choice([1, 2]), rng.choice("ab")), low + rng.randint(0, 25)
                end = rng.choice([start + 1, start + longest, INFINITY])
                rows.append((row, start, end, rng.choice([1, 1, 2])))
                for instant in range(start, min(end, horizon)):
                    elements[row, instant] += rows[-1][3]
            out.append(runner.tick({"s": Delta.from_rows(PAIR, rows)}, {"s": frontier})["q"].delta)
        history = History.of(PAIR, out)
        for instant in range(horizon):
            assert history.snapshot(instant) == window_at(elements, instant, size, 1, [0] if partition else [])
        assert sum(len(delta) for delta in out) < 2000


@pytest.mark.parametrize(("size", "slide"), [(3, 2), (INFINITY, 1)])
def test_windows_that_never_come_to_rest_are_refused(size, slide):
    operator = RowWindowOperator(ONE, size, slide, speculative=False)
    tail = Delta.from_rows(ONE, [(("a",), 4, INFINITY, 1)])
    with pytest.raises(StreamError, match="never ends") as error:
        operator.step(operator.new_state(MemoryStore()), (tail,), (INFINITY,))
    assert error.value.hint

"""The oracle against the tables of the thesis and against a slow, literal evaluation in Python."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest
from tests.aggregate_meanings import meant

from headwater.algebra.nodes import (
    FRAME_VALUES,
    Aggregate,
    AggregateCall,
    Coalesce,
    Constant,
    Distinct,
    Dstream,
    Filter,
    FrameCall,
    Frames,
    FromPositiveNegative,
    Granularity,
    HopWindow,
    Istream,
    Join,
    JoinKind,
    Plan,
    Project,
    RowWindow,
    Sample,
    SessionWindow,
    SetKind,
    SetOperation,
    Source,
    Split,
    Stamp,
    TimeWindow,
    TopK,
    Union,
    Unnest,
)
from headwater.expressions.duckdb import to_duckdb
from headwater.expressions.nodes import Column, Expression
from headwater.model.history import canonical_order, freeze
from headwater.model.schema import Schema
from headwater.model.time import INFINITY
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import Streams, streams, whole
from headwater.testing.oracle import expected_histories, expected_history
from headwater.testing.plans import aggregate, hop_window, plan, session_window, source, top_k
from headwater.testing.shape import extent, sources
from headwater.testing.timeline import LETTERS, history, timeline

# -- the worked examples of the thesis (algebra.md 4 and 13) ---------------------------------------------------------

S1 = "c @1, a*3 @2, a*3 @3, b @3, a*3 @4, b @4, c @4, b*2 @5, b*2 @6"
S2 = "b*2 @2, b*2 @3, a @4, b @4, c @4, a*2 @5, b @5, a @6, c*2 @6"
S3 = "c @1, a @2, b @3, b @4, a @5, c @6"
LEFT, RIGHT = Source("s1", Schema.of(x="STRING")), Source("s2", Schema.of(y="STRING"))
ONLY = Source("s3", Schema.of(x="STRING"))
COLUMNS = Schema.of(**dict.fromkeys(("x", "y", "l.x", "r.y"), "STRING"))
BOTH = Project(Join(LEFT, RIGHT, JoinKind.INNER), (("xy", bind_text('"x" || "y"', COLUMNS)),))


def letters(plan: Plan, until: int = 14) -> str:
    """The answer over S1, S2 and S3 in the digest's notation: ``1:c 2:a3``."""
    texts = {"s1": S1, "s2": S2, "s3": S3}
    inputs = {s.name: whole(s.schema, timeline(texts[s.name], s.schema)) for s in sources(plan)}
    answer = expected_history(plan, inputs)
    shown = []
    for t in range(until):
        rows = sorted((",".join(map(str, row)), n) for row, n in answer.snapshot(t).items())
        if rows:
            shown.append(f"{t}:" + " ".join(f"{row}x{n}" if n > 1 else row for row, n in rows))
    return " | ".join(shown)


def set_operation(kind: SetKind) -> SetOperation:
    return SetOperation(LEFT, RIGHT, kind)


LESS = bind_text('"l.x" < "r.y"', COLUMNS)
THESIS = {
    "table 8.2, filter": (
        Filter(LEFT, bind_text("\"x\" IN ('a', 'c')", COLUMNS)),
        "1:c | 2:ax3 | 3:ax3 | 4:ax3 c",
    ),
    "table 8.3, map": (
        Project(LEFT, (("f", bind_text("CASE \"x\" WHEN 'b' THEN 'x' ELSE \"x\" END", COLUMNS)),)),
        "1:c | 2:ax3 | 3:ax3 x | 4:ax3 c x | 5:xx2 | 6:xx2",
    ),
    "table 8.4, union": (Union((LEFT, RIGHT)), "1:c | 2:ax3 bx2 | 3:ax3 bx3 | 4:ax4 bx2 cx2 | 5:ax2 bx3 | 6:a bx2 cx2"),
    "table 8.5, product": (
        BOTH,
        "2:abx6 | 3:abx6 bbx2 | 4:aax3 abx3 acx3 ba bb bc ca cb cc | 5:bax4 bbx2 | 6:bax2 bcx4",
    ),
    "table 8.6, distinct": (Distinct(LEFT), "1:c | 2:a | 3:a b | 4:a b c | 5:b | 6:b"),
    "table 8.7, difference": (set_operation(SetKind.EXCEPT_ALL), "1:c | 2:ax3 | 3:ax3 | 4:ax2 | 5:b | 6:bx2"),
    "table 8.9, sum": (
        Aggregate(LEFT, (), (AggregateCall("LISTAGG", "l", pa.string(), "x", parameters=("+",)),)),
        "1:c | 2:a+a+a | 3:a+a+a+b | 4:a+a+a+b+c | 5:b+b | 6:b+b",
    ),
    "8.10, equi-join": (Join(LEFT, RIGHT, JoinKind.INNER, (("x", "y"),)), "3:b,bx2 | 4:a,ax3 b,b c,c | 5:b,bx2"),
    "8.11, semi-join": (Join(LEFT, RIGHT, JoinKind.SEMI, (("x", "y"),)), "3:b | 4:ax3 b c | 5:bx2"),
    # The digest's a x 6 at 4 is the thesis' product with the distinct matches; we keep the left multiplicity (SQL).
    "8.11, semi-join by <": (Join(LEFT, RIGHT, JoinKind.SEMI, (), LESS), "2:ax3 | 3:ax3 | 4:ax3 b | 6:bx2"),
    "8.12, intersection": (set_operation(SetKind.INTERSECT_ALL), "3:b | 4:a b c | 5:b"),
    "8.13, max-union": (
        set_operation(SetKind.MAX_UNION),
        "1:c | 2:ax3 bx2 | 3:ax3 bx2 | 4:ax3 b c | 5:ax2 bx2 | 6:a bx2 cx2",
    ),
    "8.14, strict difference": (set_operation(SetKind.STRICT_DIFFERENCE), "1:c | 2:ax3 | 3:ax3 | 6:bx2"),
    "8.15, grouping": (
        Aggregate(LEFT, ("x",), (AggregateCall("COUNT", "n", pa.int64()),)),
        "1:c,1 | 2:a,3 | 3:a,3 b,1 | 4:a,3 b,1 c,1 | 5:b,2 | 6:b,2",
    ),
    "8.16, anti-join": (Join(LEFT, RIGHT, JoinKind.ANTI, (("x", "y"),)), "1:c | 2:ax3 | 3:ax3 | 6:bx2"),
    "8.16, anti-join by <": (Join(LEFT, RIGHT, JoinKind.ANTI, (), LESS), "1:c | 3:b | 4:c | 5:bx2"),
    "table 8.10, time window": (
        TimeWindow(LEFT, 2),
        "1:c | 2:ax3 c | 3:ax6 b | 4:ax6 bx2 c | 5:ax3 bx3 c | 6:bx4 | 7:bx2",
    ),
    "17.1, time window with slide": (
        TimeWindow(LEFT, 3, 2),
        "1:c | 2:c | 3:ax6 b c | 4:ax6 b c | 5:ax6 bx4 c | 6:ax6 bx4 c | 7:bx4 | 8:bx4",
    ),
    "17.3, istream": (Istream(LEFT), "1:c | 2:ax3 | 3:b | 4:c | 5:b"),
    "17.4, dstream": (Dstream(LEFT), "2:c | 5:ax3 c | 7:bx2"),
    # Dense between the granules, as Alg. 24 (the logical table 20.1 is empty at odd instants).
    "table 20.1, granularity": (Granularity(LEFT, 2), "2:ax3 | 3:ax3 | 4:ax3 b c | 5:ax3 b c | 6:bx2 | 7:bx2"),
    "20.1, granularity with an offset": (Granularity(LEFT, 3, -1), "2:ax3 | 3:ax3 | 4:ax3 | 5:bx2 | 6:bx2 | 7:bx2"),
    "table 20.1, as printed": (Sample(LEFT, 2), "2:ax3 | 4:ax3 b c | 6:bx2"),
    "refreshed every 3 instants": (Sample(LEFT, 3, -1), "2:ax3 | 5:bx2"),
    "with their instants": (Stamp(Sample(LEFT, 3, -1), "at"), "2:a,2x3 | 5:b,5x2"),
}


@pytest.mark.parametrize("name", THESIS)
def test_oracle_agrees_with_the_thesis(name: str):
    plan, expected = THESIS[name]
    assert letters(plan) == expected


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (RowWindow(ONLY, 3), "1:c | 2:a c | 3:a b c | 4:a bx2 | 5:a bx2 | 6:a b c | 7:a b c"),  # table 8.12
        (RowWindow(ONLY, 2, 2), "2:a c | 3:a c | 4:bx2 | 5:bx2 | 6:a c | 7:a c"),  # 17.2
        (RowWindow(ONLY, 3, 2), "2:a c | 3:a c | 4:a bx2 | 5:a bx2 | 6:a b c | 7:a b c"),
        (RowWindow(ONLY, 1, 1, ("x",)), "1:c | 2:a c | 3:a b c | 4:a b c | 5:a b c | 6:a b c | 7:a b c"),
    ],
)
def test_row_windows_agree_with_the_thesis(window: RowWindow, expected: str):
    assert letters(window, until=8) == expected


def test_partitioned_window_agrees_with_table_8_13():
    grouped = Project(
        ONLY,
        (("x", Column("x", pa.string())), ("g", bind_text("\"x\" = 'b'", COLUMNS))),
    )
    window = Project(RowWindow(grouped, 1, 1, ("g",)), (("x", Column("x", pa.string())),))
    assert letters(window, until=8) == "1:c | 2:a | 3:a b | 4:a b | 5:a b | 6:b c | 7:b c"


def test_the_last_instant_stands_for_all_later_ones():
    inputs = {"s": whole(LETTERS, timeline("a 2-, b 1-3"))}
    assert expected_history(Distinct(Source("s", LETTERS)), inputs) == history("a 2-, b 1-3")
    chronons = {"s": whole(LETTERS, timeline("a @2"))}
    assert expected_history(TimeWindow(Source("s", LETTERS), INFINITY), chronons) == history("a 2-")
    assert expected_history(TimeWindow(Source("s", LETTERS), 3), inputs) == history("a 2-, a 3-, a 4-, b 1-4, b 2-5")


def test_a_window_that_grows_for_ever_is_refused():
    with pytest.raises(ValueError, match="grows for ever"):
        expected_history(RowWindow(Source("s", LETTERS), 2), {"s": whole(LETTERS, timeline("a 2-"))})


def test_signed_instants_become_intervals():
    signed = Schema.of(x="STRING", sign="INT")
    elements = timeline("a/1 @2, a/1 @3, a/-1 @5, b/1 @4, b/-1 @4, a/-1 @9", signed)
    answer = expected_history(FromPositiveNegative(Source("s", signed)), {"s": whole(signed, elements)})
    assert answer == history("a 2-5, a 3-9")


# -- a literal evaluation, instant by instant -----------------------------------------------------------------------

CONNECTION = duckdb.connect()
Stream = list[Counter]  # one snapshot an instant


def evaluate(plan: Plan, inputs: dict[str, Stream]) -> Stream:
    """The plan by its definitions, in Python."""
    below = [evaluate(child, inputs) for child in plan.inputs]
    horizon = len(next(iter(inputs.values())))
    match plan:
        case Source():
            return inputs[plan.name]
        case Filter():
            return [Counter({r: n for r, n in s.items() if value_of(plan.predicate, plan.schema, r)}) for s in below[0]]
        case Project():
            return [
                summed((tuple(value_of(e, plan.input.schema, r) for _, e in plan.expressions), n) for r, n in s.items())
                for s in below[0]
            ]
        case Union():
            return [a + b for a, b in zip(*below, strict=True)]
        case Join():
            return [joined(plan, a, b) for a, b in zip(*below, strict=True)]
        case Distinct():
            return [Counter(set(s)) for s in below[0]]
        case SetOperation():
            return [combined(plan.kind, a, b) for a, b in zip(*below, strict=True)]
        case Aggregate():
            return [aggregated(plan, s) for s in below[0]]
        case TimeWindow():
            return [time_windowed(plan, below[0], t) for t in range(horizon)]
        case RowWindow():
            return row_windowed(plan, below[0])
        case TopK():
            return [first_rows(plan, s) for s in below[0]]
        case Constant():
            return [Counter(map(freeze, plan.rows))] * horizon
        case HopWindow():
            return [hop_windowed(plan, below[0], t) for t in range(horizon)]
        case SessionWindow():
            return session_windowed(plan, below[0])
        case Frames():
            return framed(plan, below[0])
        case Unnest():
            return [summed(pair for row, n in s.items() for pair in unnested(plan, row, n)) for s in below[0]]
        case Granularity():
            last = [t - (t - plan.offset) % plan.granule for t in range(horizon)]
            return [below[0][t] if t >= 0 else Counter() for t in last]
        case Sample():
            seen = (t % plan.period == plan.offset % plan.period for t in range(horizon))
            return [s if shown else Counter() for s, shown in zip(below[0], seen, strict=True)]
        case Stamp():
            return [Counter({(*row, t): n for row, n in s.items()}) for t, s in enumerate(below[0])]
        case Split() | Coalesce():
            return below[0]
        case Istream():
            return [s - p for s, p in zip(below[0], [Counter(), *below[0]], strict=False)]
        case Dstream():
            return [p - s for s, p in zip(below[0], [Counter(), *below[0]], strict=False)]
    raise NotImplementedError(plan)


def summed(pairs) -> Counter:
    total: Counter = Counter()
    for row, n in pairs:
        total[row] += n
    return total


@cache
def value_of(scalar: Expression, schema: Schema, row: tuple, prefixes: tuple = ()):
    """One expression over one row: the only thing here that DuckDB does."""
    names = prefixes or schema.names
    batch = pa.table(
        [pa.array([thawed(v, f.type)], f.type) for v, f in zip(row, schema, strict=True)], names=list(names)
    )
    CONNECTION.register("one", batch)
    return freeze(CONNECTION.execute(f"SELECT {to_duckdb(scalar)} FROM one").fetchall()[0][0])


def thawed(value, type_: pa.DataType):
    """A frozen value as Arrow takes it: lists as lists, structs by the names of their fields."""
    if not isinstance(value, tuple):
        return value
    if pa.types.is_struct(type_):
        return {name: thawed(part, type_.field(name).type) for name, part in value}
    return [thawed(part, type_.value_type) for part in value]


def matches(join: Join, a: tuple, b: tuple) -> bool:
    left, right = join.left.schema, join.right.schema
    for x, y in join.keys:
        one, other = a[left.index(x)], b[right.index(y)]
        if one is None or other is None or not same(one, other):
            return False
    if join.residual is None:
        return True
    names = tuple(f"l.{n}" for n in left.names) + tuple(f"r.{n}" for n in right.names)
    pair = Schema(left.fields + right.fields)
    return bool(value_of(join.residual, pair, a + b, names))


def same(a, b) -> bool:
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def joined(join: Join, left: Counter, right: Counter) -> Counter:
    pairs = [(a, b, n * m) for a, n in left.items() for b, m in right.items() if matches(join, a, b)]
    alone_left = left - Counter({a: left[a] for a, _, _ in pairs})
    alone_right = right - Counter({b: right[b] for _, b, _ in pairs})
    if join.kind is JoinKind.SEMI:
        return left - alone_left
    if join.kind is JoinKind.ANTI:
        return alone_left
    answer = summed((a + b, n) for a, b, n in pairs)
    if join.kind in (JoinKind.LEFT, JoinKind.FULL):
        answer += summed((a + (None,) * len(join.right.schema), n) for a, n in alone_left.items())
    if join.kind in (JoinKind.RIGHT, JoinKind.FULL):
        answer += summed(((None,) * len(join.left.schema) + b, n) for b, n in alone_right.items())
    return answer


def combined(kind: SetKind, a: Counter, b: Counter) -> Counter:
    return {
        SetKind.EXCEPT_ALL: lambda: a - b,
        SetKind.EXCEPT: lambda: Counter(set(a) - set(b)),
        SetKind.STRICT_DIFFERENCE: lambda: Counter({r: n for r, n in a.items() if r not in b}),
        SetKind.INTERSECT_ALL: lambda: a & b,
        SetKind.INTERSECT: lambda: Counter(set(a) & set(b)),
        SetKind.MAX_UNION: lambda: a | b,
    }[kind]()


def aggregated(plan: Aggregate, snapshot: Counter) -> Counter:
    names = plan.input.schema.index
    groups: dict[tuple, list[tuple]] = {}
    for row in snapshot.elements():
        groups.setdefault(tuple(row[names(k)] for k in plan.keys), []).append(row)
    return Counter({key + tuple(computed(c, plan, rows) for c in plan.calls): 1 for key, rows in groups.items()})


def computed(call: AggregateCall, plan: Aggregate, rows: list[tuple]):
    names = plan.input.schema.index
    if call.filter is not None:
        rows = [r for r in rows if r[names(call.filter)]]
    if call.argument is None:
        return len(rows)
    values = [r[names(call.argument)] for r in rows]
    if call.distinct:
        values = list(dict.fromkeys(values))
    values.sort(key=canonical_order)
    return freeze(meant(call.function, values, call.parameters))


def time_windowed(plan: TimeWindow, stream: Stream, t: int) -> Counter:
    if t < plan.slide - 1:
        return Counter()
    k = (t + 1) // plan.slide * plan.slide
    return sum(stream[max(k - plan.size, 0) : k], Counter())


def row_windowed(plan: RowWindow, stream: Stream) -> Stream:
    places = [plan.schema.index(n) for n in plan.partition]
    seen: dict[tuple, list[tuple]] = {}
    answer = []
    for snapshot in stream:
        for row in sorted(snapshot.elements(), key=canonical_order):
            seen.setdefault(tuple(row[i] for i in places), []).append(row)
        window: Counter = Counter()
        for rows in seen.values():
            k = len(rows) // plan.slide * plan.slide
            window += Counter(rows[max(k - plan.rows, 0) : k])
        answer.append(window)
    return answer


def framed(plan: Frames, stream: Stream) -> Stream:
    places = [plan.input.schema.index(n) for n in plan.partition]
    seen: dict[tuple, list[tuple]] = {}
    answer = []
    for snapshot in stream:
        numbered = []
        for row in sorted(snapshot.elements(), key=canonical_order):
            rows = seen.setdefault(tuple(row[i] for i in places), [])
            numbered.append((row, rows, len(rows)))
            rows.append(row)
        answer.append(Counter((*row, *(over(c, plan, rows, at) for c in plan.calls)) for row, rows, at in numbered))
    return answer


def over(call: FrameCall, plan: Frames, rows: list[tuple], at: int):
    """One call for the row at a place of its partition, of which the rows up to this instant are known."""
    index = plan.input.schema.index
    frame = rows[max(at - call.first, 0) : len(rows) if call.peers else max(at - call.last + 1, 0)]
    if call.function in FRAME_VALUES:
        place = {"LAST_VALUE": len(frame) - 1, "NTH_VALUE": call.nth - 1}[call.function]
        return frame[place][index(call.argument)] if 0 <= place < len(frame) else None
    if call.filter is not None:
        frame = [row for row in frame if row[index(call.filter)]]
    if call.argument is None:
        return len(frame)
    return freeze(meant(call.function, sorted((row[index(call.argument)] for row in frame), key=canonical_order), ()))


def unnested(plan: Unnest, row: tuple, n: int) -> list[tuple[tuple, int]]:
    place = plan.input.schema.index(plan.array)
    rest, items = row[:place] + row[place + 1 :], list(enumerate(row[place] or (), 1))
    if plan.outer and not items:
        items = [(None, None)]
    return [((*rest, item, *((number,) if plan.place is not None else ())), n) for number, item in items]


def first_rows(plan: TopK, snapshot: Counter) -> Counter:
    place = plan.input.schema.index
    members = sorted(snapshot.elements(), key=canonical_order)
    for by in reversed(plan.order):  # sorts are stable, so the last one counts most
        members.sort(key=lambda row, by=by: canonical_order(row[place(by.column)]), reverse=by.descending)
        members.sort(key=lambda row, by=by: (row[place(by.column)] is None) != by.nulls_first)
    numbers: Counter = Counter()
    shown: Counter = Counter()
    for row in members:
        group = tuple(row[place(n)] for n in plan.partition)
        numbers[group] += 1
        if plan.offset < numbers[group] <= plan.offset + plan.limit:
            shown[row if plan.rank is None else (*row, numbers[group])] += 1
    return shown


def instant(plan: HopWindow | SessionWindow, t: int) -> object:
    return datetime(1970, 1, 1) + timedelta(microseconds=t) if pa.types.is_timestamp(plan.time) else t


def hop_windowed(plan: HopWindow, stream: Stream, t: int) -> Counter:
    """The windows that have ended at t but not yet a slide ago (or as long as they are shown)."""
    shown: Counter = Counter()
    for start in range(t - plan.size - (plan.lifetime or plan.slide) + 1, t - plan.size + 1):
        if (start - plan.offset) % plan.slide == 0:
            ends = instant(plan, start), instant(plan, start + plan.size)
            for snapshot in stream[max(start, 0) : max(start + plan.size, 0)]:
                shown += Counter({(*row, *ends): n for row, n in snapshot.items()})
    return shown


def session_windowed(plan: SessionWindow, stream: Stream) -> Stream:
    places = [plan.input.schema.index(n) for n in plan.partition]
    seen: dict[tuple, list[tuple[int, tuple, int]]] = {}
    for t, snapshot in enumerate(stream):
        for row, n in snapshot.items():
            seen.setdefault(tuple(row[i] for i in places), []).append((t, row, n))
    answer: Stream = [Counter() for _ in stream]
    for rows in seen.values():
        cuts = [i for i in range(1, len(rows)) if rows[i][0] - rows[i - 1][0] > plan.gap]
        for low, high in pairwise([0, *cuts, len(rows)]):
            first, end = rows[low][0], rows[high - 1][0] + plan.gap
            for _, row, n in rows[low:high]:
                for snapshot in answer[end:]:
                    snapshot[(*row, instant(plan, first), instant(plan, end))] += n
    return answer


def snapshots(schema: Schema, elements, horizon: int) -> Stream:
    stream: Stream = [Counter() for _ in range(horizon)]
    for row, start, end, weight in whole(schema, elements).rows():
        for t in range(start, min(end, horizon)):
            stream[t][freeze(row)] += weight
    return [Counter({r: n for r, n in s.items() if n}) for s in stream]


def rounded(snapshot: Counter) -> Counter:
    return summed(
        (tuple(round(v, 9) + 0.0 if isinstance(v, float) and v == v else v for v in row), n)
        for row, n in snapshot.items()
    )


def assert_agrees(plan: Plan, cases: list[Streams]) -> None:
    schemas = {s.name: s.schema for s in sources(plan)}
    inputs = [{n: whole(schemas[n], case[n]) for n in schemas} for case in cases]
    times = [t for case in inputs for d in case.values() for t in [*d.start.tolist(), *d.end.tolist()]]
    horizon = max((t for t in times if t < INFINITY), default=0) + extent(plan) + 2
    for case, answer in zip(cases, expected_histories(plan, inputs), strict=True):
        reference = evaluate(plan, {n: snapshots(schemas[n], case[n], horizon) for n in schemas})
        for t, snapshot in enumerate(reference):
            assert rounded(answer.snapshot(t)) == rounded(snapshot), (t, plan, case)


@pytest.mark.parametrize("seed", range(60))
def test_oracle_agrees_with_a_literal_evaluation(seed: int):
    dice = Dice(7, seed)
    tried = plan(dice, depth=1 + seed % 3)
    assert_agrees(tried, [streams(dice, tried) for _ in range(3)])


@pytest.mark.parametrize("seed", range(30))
def test_oracle_agrees_on_every_aggregate(seed: int):
    dice = Dice(8, seed)
    tried = aggregate(dice, source(dice, "s"), None)
    assert_agrees(tried, [streams(dice, tried) for _ in range(3)])


@pytest.mark.parametrize("seed", range(20))
def test_oracle_agrees_on_top_k(seed: int):
    dice = Dice(10, seed)
    tried = top_k(dice, source(dice, "s"))
    assert_agrees(tried, [streams(dice, tried) for _ in range(3)])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("window", [hop_window, session_window])
def test_oracle_agrees_on_hops_and_sessions(window, seed: int):
    dice = Dice(9, seed)
    tried = window(dice, source(dice, "s"))
    assert_agrees(tried, [streams(dice, tried) for _ in range(3)])

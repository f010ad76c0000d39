"""Levels of consistency, run: what is forgotten is counted and nothing else is lost; what can be shared is shared."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from headwater.algebra import nodes as n
from headwater.backends.explain import explain
from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.consistency import MIDDLE, STRONG, WEAK, Consistency, Level
from headwater.language.introspection import Explain
from headwater.model.delta import Delta
from headwater.model.element import Stable
from headwater.model.history import History
from headwater.model.schema import Schema
from headwater.model.time import BEGINNING, INFINITY
from headwater.model.validity import StreamValidator
from headwater.operators.tables.repair import RepairOperator
from headwater.operators.waiting.block import BlockOperator
from headwater.operators.waiting.finalize import FinalizeOperator
from headwater.runtime.graph import Graph
from headwater.runtime.lower import Lowering
from headwater.runtime.reach import reached
from headwater.runtime.stepping import Stepped, StepRunner
from headwater.testing.cases import OPERATORS
from headwater.testing.choices import Dice
from headwater.testing.expression_text import bind_text
from headwater.testing.generate import cut, streams, whole
from headwater.testing.oracle import expected_histories
from headwater.testing.shape import sources

S = Schema.of(k="INT", v="INT")
COUNT = n.Aggregate(n.Source("s", S), ("k",), (n.AggregateCall("COUNT", "n", pa.int64()),))


def block(b: int, m: int = INFINITY, *, wall: bool = False) -> Consistency:
    return Consistency(Level.BLOCK, b, m, wall=wall)


# -- forgetting ------------------------------------------------------------------------------------------------------

_PLANS = [
    "distinct",
    "aggregate sums",
    "join inner equi",
    "join left both",
    "join semi equi",
    "set except all",
    "top-k",
]


@pytest.mark.parametrize("name", _PLANS)
@pytest.mark.parametrize("level", [WEAK, block(0, 3), block(2, 2), block(2, 4)], ids=str)
def test_the_answer_is_that_of_what_was_not_forgotten(name: str, level: Consistency):
    """The query's own input is what the streams themselves show at its level; on any number of shards."""
    total = 0
    for seed in range(4):
        dice = Dice(seed, _PLANS.index(name))
        plan = OPERATORS[name](dice)
        given = {k: cut(dice, part, 5) for k, part in streams(dice, plan).items()}
        own = [Stepped(s.name, s, consistency=level) for s in sources(plan)]
        answers = []
        for shards in (1, 3):
            runner = StepRunner([Stepped("query", plan, consistency=level), *own], shards=shards, portion=4)
            answers.append(_run(runner, plan, given))
        (deltas, forgotten), again = answers
        assert again[1] == forgotten
        shown = {s.name: Delta.concat(s.schema, deltas[s.name]).consolidate() for s in sources(plan)}
        (expected,) = expected_histories(plan, [shown])
        for its, _ in answers:
            assert History.of(plan.schema, its["query"]) == expected
        (everything,) = expected_histories(
            plan, [{s.name: whole(s.schema, [e for p in given[s.name] for e in p]) for s in sources(plan)}]
        )
        assert forgotten or expected == everything
        total += forgotten
    assert total, "nothing came late: nothing was tested"


def _run(runner: StepRunner, plan: n.Plan, given) -> tuple[dict[str, list[Delta]], int]:
    """The deltas of every query, each legal at its own frontier, and how many changes were forgotten."""
    names = list(runner.layout.graph.queries)
    deltas: dict[str, list[Delta]] = {name: [] for name in names}
    schemas = {name: runner.layout.graph.nodes[i].schema for name, i in runner.layout.graph.queries.items()}
    validators = {name: StreamValidator(schema) for name, schema in schemas.items()}
    frontiers = {s.name: BEGINNING for s in sources(plan)}
    for i in range(6):
        parts = {s.name: given[s.name][i] if i < 5 else [Stable(INFINITY)] for s in sources(plan)}
        for s, part in parts.items():
            frontiers[s] = max([frontiers[s], *(e.at for e in part if isinstance(e, Stable))])
        arrived = {s.name: whole(s.schema, parts[s.name]) for s in sources(plan)}
        for name, (delta, frontier) in runner.tick(arrived, dict(frontiers)).items():
            validators[name].check_delta(delta, frontier)
            deltas[name].append(delta)
    assert runner.buffered().rows == 0
    return deltas, runner.counts("forgotten")


@pytest.mark.parametrize(
    "name", ["distinct", "aggregate windowed", "join full equi", "top-k windowed", "session window"]
)
@pytest.mark.parametrize("level", [MIDDLE, block(3), block(2, 4)], ids=str)
def test_nothing_is_said_and_taken_back_in_one_tick(name: str, level: Consistency):
    """And what has not changed is not said again: of one row, start and end a tick says one thing, and that is news."""
    for seed in range(4):
        dice = Dice(seed, 55)
        plan = OPERATORS[name](dice)
        given = {k: cut(dice, part, 5) for k, part in streams(dice, plan).items()}
        deltas, _ = _run(StepRunner([Stepped("query", plan, consistency=level)], portion=4), plan, given)
        for delta in deltas["query"]:
            comes, goes = (
                {(str(row), start, end) for row, start, end, weight in delta.rows() if sign * weight > 0}
                for sign in (1, -1)
            )
            assert not comes & goes


def test_a_stream_that_lags_behind_is_not_cut_off_by_another():
    union = n.Union((n.Source("s", S), n.Source("t", S)))
    runner = StepRunner([Stepped("query", n.Distinct(union), consistency=WEAK)])
    late = {"s": _row(1, 100), "t": _row(2, 10)}
    runner.tick(late, {})
    step = runner.tick({"t": _row(3, 11)}, {})["query"]
    assert [row for row, *_ in step.delta.rows()] == [(3, 3)]
    assert runner.counts("forgotten") == 0


def _row(k: int, at: int) -> Delta:
    return Delta.from_rows(S, [((k, k), at, at + 5, 1)])


# -- waiting ---------------------------------------------------------------------------------------------------------


def test_rows_wait_as_long_as_said_and_no_longer():
    """By the streams' own time: a row shows once a row has come that is so much newer, or when it is final."""
    runner = StepRunner([Stepped("query", COUNT, consistency=block(10))])
    shown = []
    for at, frontier in [(100, 0), (105, 0), (110, 0), (111, 106), (112, INFINITY)]:
        step = runner.tick({"s": _row(at % 7, at)}, {"s": frontier})["query"]
        shown.append(sorted(int(s) for s in step.delta.start[step.delta.weight > 0]))
    assert shown[:3] == [[], [], [100]]
    assert 105 in shown[3]  # it is final
    assert 110 not in shown[3]


def test_by_wall_clock_rows_wait_for_what_was_newest_so_long_ago():
    graph = Graph()
    Lowering(graph).add_query("query", COUNT, consistency=block(30, 60, wall=True))
    (waits,) = (node for node in graph.nodes if isinstance(node.operator, BlockOperator))
    (closes,) = (node for node in graph.nodes if isinstance(node.operator, FinalizeOperator))
    newest, earlier = {"s": 1000}, {"s": {30: 400, 60: 200}}
    assert reached(graph, waits, {"s"}, {}, newest, earlier) == 400
    assert reached(graph, closes, {"s"}, {}, newest, earlier) == 200
    assert reached(graph, closes, {"s"}, {"s": 300}, newest, earlier) == 300
    assert reached(graph, waits, {"s"}, {}, newest, {}) == BEGINNING


def test_a_recording_has_no_wall_clock():
    with pytest.raises(InputError, match="NO_WALL_CLOCK"):
        StepRunner([Stepped("query", COUNT, consistency=block(30, 60, wall=True))])


# -- sharing ---------------------------------------------------------------------------------------------------------


def _graph(**queries: tuple[n.Plan, Consistency]) -> Graph:
    graph = Graph()
    lowering = Lowering(graph)
    for name, (plan, level) in queries.items():
        lowering.add_query(name, plan, consistency=level)
    return graph


def test_equal_levels_share_everything_and_others_all_below_the_waiting():
    kept = n.Filter(n.Source("s", S), bind_text('"v" > 1', S))
    plan = n.Distinct(kept)
    graph = _graph(
        a=(plan, STRONG), b=(plan, MIDDLE), c=(plan, block(3, 9)), d=(plan, block(3, 9)), e=(plan, block(4, 9))
    )
    assert graph.queries["c"] == graph.queries["d"]
    assert len({graph.queries[q] for q in "abce"}) == 4
    assert len({node.key for node in graph.nodes}) == len(graph.nodes)
    count = Counter(node.operator.name if node.operator else "source" for node in graph.nodes)
    assert count == {"source": 1, "filter": 1, "count sweep": 4, "finalize": 2, "block": 2}


def test_a_key_does_not_depend_on_who_else_runs():
    first, second = n.Distinct(n.Source("s", S)), COUNT
    alone = _graph(b=(second, block(3, 9)))
    both = _graph(a=(first, block(3, 9)), b=(second, block(3, 9)))
    keys = {node.key for node in alone.nodes}
    assert keys <= {node.key for node in both.nodes}


def test_what_waits_goes_where_its_reader_needs_it():
    join = n.Join(n.Source("s", S), n.Source("t", Schema.of(a="INT", b="INT")), n.JoinKind.INNER, (("k", "a"),))
    graph = _graph(q=(join, block(3, 9)))
    waits = [node.operator.routing() for node in graph.nodes if isinstance(node.operator, BlockOperator)]
    assert sorted(waits) == [(("a",),), (("k",),)]


def test_changes_in_any_order_are_put_in_order_once_for_all():
    unordered = n.Source("s", S, unordered=True)
    graph = _graph(a=(n.Distinct(unordered), STRONG), b=(n.Distinct(unordered), block(1, 2)), c=(unordered, MIDDLE))
    assert sum(isinstance(node.operator, RepairOperator) for node in graph.nodes) == 1
    late = Graph()
    lowering = Lowering(late)
    lowering.add_query("a", unordered, consistency=MIDDLE)
    lowering.add_query("b", n.Distinct(unordered), consistency=block(1, 2), since=4)
    names = [node.operator.name for node in late.nodes if node.operator]
    assert names == ["repair", "standing rows", "hand over", "finalize", "block", "count sweep"]


def test_a_broken_chain_is_repaired_below_every_level():
    plan = n.Aggregate(n.Source("s", S, unordered=True), (), (n.AggregateCall("COUNT", "n", pa.int64()),))
    queries = [Stepped(str(level), plan, consistency=level) for level in (STRONG, MIDDLE, block(2))]
    runner = StepRunner(queries, shards=2)
    row = (1, 1)
    events = [[(row, 0, 8, -1), (row, 0, 6, 1)], [(row, 0, 10, -1), (row, 0, 8, 1)], [(row, 0, 10, 1)], []]
    deltas: dict[str, list[Delta]] = {q.name: [] for q in queries}
    for i, rows in enumerate(events):
        frontier = INFINITY if i == 3 else 0
        for name, step in runner.tick({"s": Delta.from_rows(S, rows)}, {"s": frontier}).items():
            deltas[name].append(step.delta)
    for its in deltas.values():
        assert History.of(plan.schema, its).rows() == [((1,), 0, 6, 1)]


def test_explain_shows_what_waits_and_what_is_remembered():
    stream = "CREATE STREAM s (k INT, t TIMESTAMP) ORDERED BY t;"
    level = "BLOCK 5 SECONDS REMEMBER 1 MINUTE BY WALL CLOCK"
    query = f"EXPLAIN PHYSICAL SELECT k, COUNT(*) AS n FROM s GROUP BY k CONSISTENCY {level}"
    (asked,) = bind_script(f"{stream} {query}").answers
    assert isinstance(asked, Explain)
    shown = [line.strip("─└ ").partition("  ")[0] for line in explain(asked).partition("\n\n")[0].splitlines()]
    assert shown[-3:-1] == ["block (for 5 SECONDS BY WALL CLOCK)", "finalize (remember 1 MINUTE BY WALL CLOCK)"]


# -- changing --------------------------------------------------------------------------------------------------------

_LEVELS = [MIDDLE, block(1), block(3), block(6), block(2, 10_000), block(0, 10_000)]


@pytest.mark.parametrize(
    "name", ["distinct", "aggregate sums", "join inner equi", "join full both", "row window", "union", "session window"]
)
@pytest.mark.parametrize("on_files", [False, True])
def test_the_level_of_a_running_query_changes_between_ticks(name: str, on_files: bool, tmp_path):
    """As often as one likes: the history is that of any other level, and every promise is kept on the way."""
    for seed in range(4):
        dice = Dice(seed, 77)
        plan = OPERATORS[name](dice)
        given = {k: cut(dice, part, 5) for k, part in streams(dice, plan).items()}
        first = dice.pick(_LEVELS)
        queries = [Stepped("query", plan, consistency=first), Stepped("other", plan, consistency=first)]
        runner = StepRunner(queries, shards=2, folder=tmp_path / f"{seed}" if on_files else None)
        changing = _Changing(runner, dice)
        deltas, _ = _run(changing, plan, given)  # type: ignore[arg-type]
        arrived = {s.name: whole(s.schema, [e for p in given[s.name] for e in p]) for s in sources(plan)}
        (expected,) = expected_histories(plan, [arrived])
        for query in ("query", "other"):
            assert History.of(plan.schema, deltas[query]) == expected, query


class _Changing:
    """Changes the level of one of two equal queries after every tick."""

    def __init__(self, runner: StepRunner, dice: Dice) -> None:
        self._runner, self._dice = runner, dice
        self.layout, self.buffered, self.counts = runner.layout, runner.buffered, runner.counts

    def tick(self, deltas, frontiers):
        made = self._runner.tick(deltas, frontiers)
        self._runner.change_level("query", self._dice.pick(_LEVELS))
        return made


def test_a_past_that_was_closed_stays_closed():
    """Remembering for longer does not bring back what has been promised away."""
    runner = StepRunner([Stepped("query", COUNT, consistency=WEAK)])
    validator = StreamValidator(COUNT.schema)

    def tick(k: int, at: int) -> None:
        step = runner.tick({"s": _row(k, at)}, {"s": BEGINNING})["query"]
        validator.check_delta(step.delta, step.frontier)

    tick(1, 50)
    runner.change_level("query", MIDDLE)
    tick(2, 20)
    assert runner.counts("forgotten") == 1
    tick(3, 60)
    tick(4, 55)  # only what is newer than the past that was closed before counts
    assert runner.counts("forgotten") == 1


@pytest.mark.parametrize("name", ["distinct", "aggregate sums", "join left equi", "row window", "top-k"])
def test_a_query_becomes_strong_and_another_one_again(name: str):
    """While it is strong nothing is taken back that came since then; the history is that of any other level."""
    for seed in range(5):
        dice = Dice(seed, 99)
        plan = OPERATORS[name](dice)
        given = {k: cut(dice, part, 5) for k, part in streams(dice, plan).items()}
        query = Stepped("query", plan, consistency=dice.pick(_LEVELS), opens=seed % 2 == 0)
        runner = StepRunner([query], shards=dice.integer(1, 3))
        changing = _Strong(runner, dice)
        deltas, _ = _run(changing, plan, given)  # type: ignore[arg-type]
        arrived = {s.name: whole(s.schema, [e for p in given[s.name] for e in p]) for s in sources(plan)}
        (expected,) = expected_histories(plan, [arrived])
        assert History.of(plan.schema, deltas["query"]) == expected


class _Strong(_Changing):
    """Makes a query strong and another one again, by chance."""

    def __init__(self, runner: StepRunner, dice: Dice) -> None:
        super().__init__(runner, dice)
        self.strong = False
        self.came: Counter[tuple[object, int, int]] = Counter()

    def tick(self, deltas, frontiers):
        made = self._runner.tick(deltas, frontiers)
        if self.strong:
            goes = [(str(r), s, e) for r, s, e, w in made["query"].delta.rows() if w < 0 and e != INFINITY]
            assert not any(self.came[key] for key in goes), "what came while it was strong was taken back"
            for row, start, end, weight in made["query"].delta.rows():
                self.came[str(row), start, end] += max(weight, 0)
        if self._dice.chance(50):
            self.strong = not self.strong
            self.came.clear()
            self._runner.change_level("query", STRONG if self.strong else self._dice.pick(_LEVELS))
        return made


# -- balances always sum to zero -------------------------------------------------------------------------------------

_TRANSFERS = """
CREATE STREAM transfer (account INT, amount INT, at BIGINT) ORDERED BY at;
SELECT SUM(balance) AS total FROM (
    SELECT account, SUM(amount) AS balance FROM transfer WINDOW(RANGE UNBOUNDED) GROUP BY account
)
"""


@pytest.mark.parametrize("seed", range(6))
def test_balances_always_sum_to_zero(seed: int):
    """A transfer is two updates of one instant, which arrive apart; the total of the balances is a query over them."""
    script = bind_script(_TRANSFERS)
    assert script.result is not None
    plan = script.result.plan
    (source,) = sources(plan)
    dice = Dice(seed, 3)
    halves = []
    for at in range(1, 40):
        amount = dice.integer(1, 9)
        for account, sign in ((dice.integer(0, 3), 1), (dice.integer(4, 7), -1)):
            halves.append((at + dice.integer(0, 8), ((account, sign * amount, at), at, at + 1, 1)))
    halves.sort(key=lambda half: half[0])
    queries = {str(level): level for level in (STRONG, MIDDLE, block(4), block(8))}
    runner = StepRunner([Stepped(name, plan, consistency=level) for name, level in queries.items()], shards=2)
    deltas: dict[str, list[Delta]] = {name: [] for name in queries}
    for now in range(1, 50):
        rows = [row for arrives, row in halves if arrives == now]
        frontier = INFINITY if now == 49 else now - 8
        for name, step in runner.tick(
            {"transfer": Delta.from_rows(source.schema, rows)}, {"transfer": frontier}
        ).items():
            if name in ("STRONG", str(block(8))):
                assert all(row == (0,) for row, *_ in step.delta.rows()), name
                assert name != "STRONG" or (step.delta.weight > 0).all()
            deltas[name].append(step.delta)
    for name, its in deltas.items():
        assert {row for row, *_ in History.of(plan.schema, its).rows()} == {(0,)}, name
    wrong = [row for delta in deltas["MIDDLE"] for row, *_ in delta.rows() if row != (0,)]
    assert wrong, "the halves never came apart: nothing was tested"

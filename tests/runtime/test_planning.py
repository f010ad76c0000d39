"""What runs is what was asked for, whatever declarations let expect."""

from __future__ import annotations

import pytest

from headwater.algebra.nodes import Plan, Source
from headwater.algebra.plan_text import print_plan
from headwater.errors import HeadwaterError
from headwater.language.binder import bind_script
from headwater.model.element import Adjust, Insert
from headwater.optimizer.phases import PHYSICAL
from headwater.optimizer.plan_query import logical_only, plan_query
from headwater.runtime.lower import lower
from headwater.runtime.plan_keys import narrow
from headwater.runtime.recording import are_chronons, over_recorded
from headwater.settings import Settings

SCRIPT = "CREATE STREAM s (x INT, ts BIGINT) ORDERED BY ts; SELECT x FROM s WHERE x > 1 AND TRUE"


def plan(script: str = SCRIPT):
    result = bind_script(script).result
    assert result is not None
    return result.plan


def test_a_stream_with_a_time_column_is_taken_to_bring_instants():
    (source,) = [node for node in plan().walk() if isinstance(node, Source)]
    assert (source.chronons, source.revisable) == (True, False)


def test_a_recording_decides_what_its_streams_are():
    assert are_chronons([Insert((1, 1), 1, 2), Insert((1, 1), 5, 6)])
    assert not are_chronons([Insert((1, 1), 1, 3)])
    assert not are_chronons([Insert((1, 1), 1, 2), Adjust((1, 1), 1, 2, 1)])
    (source,) = [node for node in over_recorded(plan(), {"s": False}).walk() if isinstance(node, Source)]
    assert (source.chronons, source.revisable) == (False, True)


def test_the_optimizer_can_be_switched_off():
    written = plan("CREATE STREAM s (x INT); SELECT * FROM ISTREAM(s) WHERE x > 1")
    assert plan_query(written, Settings(optimizer="off")).logical == written
    assert plan_query(written, Settings()).logical != written


def test_rules_can_be_switched_off():
    written = plan("CREATE STREAM s (x INT); SELECT * FROM ISTREAM(s) WHERE x > 1")
    assert plan_query(written, Settings(without_rules="push_down_filter, now_window")).logical == written


def test_an_unknown_rule_is_named():
    with pytest.raises(HeadwaterError) as caught:
        plan_query(plan(), Settings(without_rules="now_windows"))
    assert str(caught.value) == (
        'UNKNOWN_RULE: there is no rule "now_windows" to switch off\n  hint:   Did you mean "now_window"?'
    )


def test_a_query_of_many_parts_in_each_other_is_lowered_at_once():
    nested = "s"
    for i in range(40):
        nested = f"(SELECT DISTINCT x + {i} AS x FROM {nested} t{i})"
    written = plan(f"CREATE STREAM s (x INT); SELECT x FROM {nested} t")
    assert len(lower({"q": written}).nodes) > 80


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX(v) AS v FROM s [RANGE 10 SLIDE 5] WHERE k > 0",
        "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k",
        "SELECT a.k, b.v FROM s [RANGE 10] a JOIN s [RANGE 10] b ON a.k = b.k WHERE a.v < b.v",
        "SELECT DISTINCT a.v FROM s [RANGE 9] a, s [RANGE 5] b, s [RANGE 7] c WHERE a.k = b.k AND b.v = c.v",
    ],
)
def test_columns_that_are_not_read_make_no_other_plan(query: str):
    """Plans of equal cost were chosen by how the widths of all columns of the stream happened to be rounded."""
    plans = set()
    for more in ("", ", a STRING", ", a DOUBLE", ", a INT, b INT, c DATE", ", a ARRAY<STRING>, b BOOLEAN, c STRING"):
        script = f"CREATE STREAM s (k INT, v INT, at INT{more}) ORDERED BY at IN ORDER; {query}"
        plans.add(print_plan(narrow(plan_query(plan(script), Settings()).plan)))
    assert len(plans) == 1


@pytest.mark.parametrize("types", [("TINYINT", "SMALLINT"), ("INT", "BIGINT"), ("FLOAT", "DOUBLE")])
def test_wider_numbers_make_no_other_plan(types: tuple[str, str]):
    plans = set()
    for type_ in types:
        script = f"CREATE STREAM s (k {type_}, v {type_}, at INT) ORDERED BY at IN ORDER;"
        query = "SELECT MAX(c.v) AS v FROM s [RANGE 10 SLIDE 5] a, s [RANGE 3] c WHERE a.k = c.k GROUP BY a.k"
        plans.add(print_plan(narrow(plan_query(plan(script + query), Settings()).plan)).replace(type_, "NUMBER"))
    assert len(plans) == 1


SLICES = """CREATE STREAM s (x INT, y INT, z STRING, ts BIGINT) ORDERED BY ts IN ORDER;
    SELECT x, window_end, SUM(y) AS total FROM TUMBLE(s, DESCRIPTOR(ts), 10) GROUP BY x, window_end"""


def nodes(made: Plan) -> set[str]:
    return {type(node).__name__ for node in made.walk()}


def test_how_a_plan_runs_is_decided_by_rules():
    made = plan_query(plan(SLICES), Settings())
    assert nodes(made.plan) - nodes(made.logical) == {"Granularity", "PreAggregate"}
    assert {"early_windows", "partial_aggregates", "prune_columns"} <= {firing.rule for firing in made.firings}
    physical = {rule.name for rule in PHYSICAL}
    assert not physical & {firing.rule for firing in logical_only(made).firings}


def test_physical_rules_are_switched_off_like_others():
    for rule in ("early_windows", "partial_aggregates", "prune_columns"):
        made = plan_query(plan(SLICES), Settings(without_rules=rule))
        assert rule not in {firing.rule for firing in made.firings}
    off = plan_query(plan(SLICES), Settings(without_rules=", ".join(rule.name for rule in PHYSICAL)))
    assert off.plan == off.logical


def test_a_plan_as_it_is_written_is_final_when_windows_end():
    made = plan_query(plan(SLICES), Settings(optimizer="off"))
    assert nodes(made.plan) - nodes(made.logical) == {"Granularity"}
    assert [len(node.schema) for node in made.plan.walk() if isinstance(node, Source)] == [4]


def test_a_recording_is_run_by_the_same_rules():
    script = SLICES.replace("ORDERED BY ts IN ORDER", "ORDERED BY ts")
    made = plan_query(over_recorded(plan(script), {"s": True}), Settings())
    assert {"early_windows", "partial_aggregates"} <= {firing.rule for firing in made.firings}
    assert "prune_columns" not in {firing.rule for firing in made.firings}, "what is recorded may be revised"

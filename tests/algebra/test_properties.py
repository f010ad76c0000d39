"""What is known of a plan without running it."""

from __future__ import annotations

import pytest

from headwater.algebra import nodes as n
from headwater.algebra.properties import (
    has_key,
    is_chronon,
    nullable,
    properties,
    unbounded_state,
)
from headwater.model.time import INFINITY
from headwater.testing import plans
from headwater.testing.choices import Dice
from headwater.testing.plan_text import parse_plan

S = "source s (k BIGINT NOT NULL, v STRING, f BOOLEAN)"
CHRONONS = f"{S} chronons"
T = "source t (a BIGINT, b STRING NOT NULL)"


def over(*lines: str) -> n.Plan:
    """A chain of operators: each line is the input of the one before."""
    return parse_plan("\n".join("  " * depth + line for depth, line in enumerate(lines)))


def both(top: str, left: n.Plan | str, right: n.Plan | str) -> n.Plan:
    """A node of two inputs."""
    sides = [parse_plan(side) if isinstance(side, str) else side for side in (left, right)]
    names = [f"source {name} {side.schema}" for name, side in zip("xy", sides, strict=True)]
    return parse_plan(f"{top}\n  {names[0]}\n  {names[1]}").with_inputs(*sides)


def rows(plan: n.Plan) -> str:
    """Keys, columns that are not NULL, and columns of one value, as text."""
    known = properties(plan)
    keys = " ".join("{" + ",".join(sorted(key)) + "}" for key in known.keys)
    not_null = ",".join(f.name for f in known.schema if not f.nullable)
    uniform = ",".join(sorted(known.uniform - known.constants.keys()))
    constants = ",".join(f"{name}={value}" for name, value in sorted(known.constants.items()))
    parts = {"keys": keys, "not null": not_null, "uniform": uniform, "constant": constants}
    return "; ".join(f"{name} {value}" for name, value in parts.items() if value)


def times(plan: n.Plan) -> str:
    known = properties(plan)
    lifetime = {None: "", INFINITY: "endless"}.get(known.lifetime, f"lifetime {known.lifetime}")
    flags = {"end ordered": known.end_ordered, "ends": known.ends, "accumulates": known.accumulates}
    return "; ".join(part for part in (lifetime, *(name for name, holds in flags.items() if holds)) if part)


COUNTED = 'aggregate by "k": COUNT(*) AS "n" BIGINT'
DISTINCT_T = f"distinct\n  {T}"
BY_A = f'aggregate by "a": COUNT(*) AS "m" BIGINT\n  {T}'
BY_B = f'aggregate by "b": COUNT(*) AS "m" BIGINT\n  {T}'
BY_K = f"{COUNTED}\n  {S}"
ONE_T = f'aggregate: COUNT(*) AS "m" BIGINT\n  {T}'
HOP = 'hop size 4 slide 2 as "ws", "we" BIGINT'

ROWS = [
    (over(S), "not null k"),
    (over("constant (id INT, name STRING) [(1, 'a'), (2, NULL)]"), "keys {id} {name}; not null id"),
    (over("constant (id INT, x DOUBLE) [(1, 0.0), (1, 1.0)]"), "not null id,x; constant id=1"),
    (over("constant (id INT, x INT) [(1, 2), (2, 2), (1, 3)]"), "keys {id,x}; not null id,x"),
    (over("constant (id INT) []"), "keys {}; not null id; uniform id"),
    (over("constant (id INT) [(NULL)]"), "keys {}; constant id=NULL"),
    (over('filter "v" = \'a\' AND "f"', S), "not null k,v,f; constant f=TRUE,v='a'"),
    (over('filter "k" = 1 OR "v" > \'a\'', S), "not null k"),
    (over('filter "k" = 1.5 AND CAST("v" AS INT) = 1', S), "not null k,v"),
    (over('filter "v" LIKE \'a%\' AND NOT "f"', S), "not null k,v,f; constant f=FALSE"),
    (over('filter "k" = 3', COUNTED, S), "keys {}; not null k,n; uniform n; constant k=3"),
    (over('filter "k" = "n"', COUNTED, S), "keys {k} {n}; not null k,n"),
    (over('filter "n" BETWEEN 1 AND 2', COUNTED, S), "keys {k}; not null k,n"),
    (over('project "w" = "n", "x" = "k"', COUNTED, S), "keys {x}; not null w,x"),
    (over('project "x" = "k", "y" = "k"', COUNTED, S), "keys {x} {y}; not null x,y"),
    (over('project "n", "x" BIGINT = "k" + 0', COUNTED, S), "not null n"),
    (
        over('project "v", "c" INT = 3, "i" BOOLEAN = "v" IS NULL, "d" STRING = coalesce("v", \'\')', S),
        "not null c,i,d; constant c=3",
    ),
    (over('project "c" INT = 3, "k"', "distinct", 'project "k"', S), "keys {k}; not null c,k; constant c=3"),
    (both("union", over("distinct", S), over("distinct", S)), "not null k"),
    (
        both("union", over('project "a" INT = 1, "b" INT = 2', S), over('project "a" INT = 1, "b" INT = 3', S)),
        "not null a,b; constant a=1",
    ),
    (over("distinct", S), "keys {f,k,v}; not null k"),
    (over("distinct", COUNTED, S), "keys {k}; not null k,n"),
    (both("except all", BY_K, BY_K), "keys {k}; not null k,n"),
    (both("except", S, S), "keys {f,k,v}; not null k"),
    (both("strict difference", S, S), "not null k"),
    (both("intersect all", S, over("distinct", S)), "keys {f,k,v}; not null k"),
    (
        both("intersect", over('project "v", "k"', S), over('project "b", "a"', "distinct", T)),
        "keys {k,v}; not null v,k",
    ),
    (both("max union", over("distinct", S), over("distinct", S)), "keys {f,k,v}; not null k"),
    (both("max union", over("distinct", S), S), "not null k"),
    # Every left row meets one right row at most.
    (both('inner join on "k" = "a"', BY_K, BY_A), "keys {a} {k}; not null k,n,a,m"),
    (both('inner join on "k" = "a"', S, BY_A), "not null k,a,m"),
    (both('inner join on "k" = "a"', BY_K, DISTINCT_T), "keys {a,b} {b,k}; not null k,n,a,b"),
    (both("inner join", BY_K, BY_B), "keys {b,k}; not null k,n,b,m"),
    (both("inner join", BY_K, ONE_T), "keys {k}; not null k,n,m; uniform m"),
    (both('inner join where CAST("l.v" AS INT) < "r.a"', S, T), "not null k,v,a,b"),
    (both('left join on "k" = "a"', BY_K, BY_A), "keys {k}; not null k,n"),
    (both('left join on "k" = "a"', BY_K, DISTINCT_T), "keys {b,k}; not null k,n"),
    (both('right join on "k" = "a"', BY_K, BY_A), "keys {a}; not null m"),
    (both('right join on "k" = "a"', S, BY_A), "not null m"),
    # Without a column that is never NULL a lone row of either side may look like one of the other.
    (both('full join on "k" = "a"', BY_K, BY_A), "keys {a,k}"),
    (both('full join on "n" = "a"', over('project "n"', COUNTED, S), BY_A), ""),
    (both('full join on "v" = "b"', over('aggregate by "v"', S), BY_B.replace("NOT NULL", "")), ""),
    (both('semi join on "v" = "b"', over("distinct", S), T), "keys {f,k,v}; not null k,v"),
    (both('anti join on "v" = "b"', over("distinct", S), T), "keys {f,k,v}; not null k"),
    (
        over('aggregate: COUNT("v") FILTER "f" AS "n" BIGINT, MAX("k") AS "m" BIGINT', S),
        "keys {}; not null n,m; uniform m,n",
    ),
    (over('aggregate by "v", "f": MAX("v") AS "m" STRING', S), "keys {f,v}"),
    (
        over(
            'aggregate by "k", "n": MAX("k") FILTER "f" AS "m" BIGINT',
            'project "k", "n", "f" BOOLEAN = true',
            COUNTED,
            S,
        ),
        "keys {k}; not null k,n",
    ),
    (over('aggregate by "v", "ws", "we"', HOP, S), "keys {v}; not null ws,we; uniform we,ws"),
    (over('top 3 by "v"', S), "not null k"),
    (over('top 3 by "v" partition by "f" as "rn"', S), "keys {f,rn}; not null k,rn"),
    (over('top 1 offset 2 by "v" partition by "f"', S), "keys {f}; not null k"),
    (over('top 1 by "v"', S), "keys {}; not null k; uniform f,k,v"),
    (over('filter "rn" = 1', 'top all by "v" partition by "f" as "rn"', S), "keys {f}; not null k,rn; constant rn=1"),
    (over("window range 1 slide 3", COUNTED, S), "keys {k}; not null k,n"),
    (over("window range 2", 'project "k", "c" INT = 1', COUNTED, S), "not null k,c; constant c=1"),
    (over('window rows 1 slide 2 partition by "f"', S), "keys {f}; not null k"),
    (over("window rows 1", S), "keys {}; not null k; uniform f,k,v"),
    (over('window rows 2 partition by "k"', COUNTED, S), "not null k,n"),
    (over(HOP, COUNTED, S), "not null k,n,ws,we; uniform we,ws"),
    (over(HOP.replace("4", "1"), COUNTED, S), "keys {k}; not null k,n,ws,we; uniform we,ws"),
    (over('session gap 3 partition by "k" as "ws", "we" BIGINT', COUNTED, S), "not null k,n,ws,we"),
    (over("granularity 5", COUNTED, S), "keys {k}; not null k,n"),
    (over("sample 5", COUNTED, S), "keys {k}; not null k,n"),
    (over('stamp "at"', COUNTED, S), "keys {k}; not null k,n,at; uniform at"),
    (over("window range 2", 'stamp "at"', COUNTED, S), "not null k,n,at"),
    (over("split 1", COUNTED, S), "keys {k}; not null k,n"),
    (over("coalesce", COUNTED, S), "keys {k}; not null k,n"),
    (over("istream", COUNTED, S), "keys {k}; not null k,n"),
    (over("dstream", COUNTED, S), "keys {k}; not null k,n"),
    (over('to positive negative "sign"', COUNTED, S), "keys {k,sign}; not null k,n,sign"),
    (over('from positive negative "sign"', 'to positive negative "sign"', COUNTED, S), "not null k,n"),
]


@pytest.mark.parametrize(("plan", "expected"), ROWS, ids=[f"{i} {p.line()[:40]}" for i, (p, _) in enumerate(ROWS)])
def test_rows(plan: n.Plan, expected: str):
    assert rows(plan) == expected


# -- intervals ------------------------------------------------------------------------------------------------------

WINDOW = "window range 10"
UNBOUNDED = "window range unbounded"
SESSION = 'session gap 3 as "ws", "we" BIGINT'
CONSTANT = "constant (k BIGINT, v STRING, f BOOLEAN) [(1, 'a', TRUE)]"
WINDOWED = f"{WINDOW}\n  {CHRONONS}"
FOR_EVER = f"{UNBOUNDED}\n  {CHRONONS}"
OTHERS = f"window range 7\n  {T} chronons"

TIMES = [
    (over(S), ""),
    (over(CHRONONS), "lifetime 1; end ordered; ends"),
    (over(CONSTANT), "endless; end ordered"),
    (over('filter "f"', CHRONONS), "lifetime 1; end ordered; ends"),
    (over('project "k"', WINDOW, CHRONONS), "lifetime 10; end ordered; ends"),
    (both("union", CHRONONS, CHRONONS), "lifetime 1; end ordered; ends"),
    (both("union", WINDOWED, CHRONONS), "ends"),
    (both('inner join on "k" = "a"', CHRONONS, T), "lifetime 1; end ordered; ends"),
    (both('inner join on "k" = "a"', WINDOWED, T), "ends"),
    (both('left join on "k" = "a"', CHRONONS, T), "ends"),
    (both('right join on "k" = "a"', CHRONONS, T), ""),
    (both('full join on "k" = "a"', CHRONONS, OTHERS), "ends"),
    (both('semi join on "k" = "a"', S, OTHERS), "ends"),
    (both('anti join on "k" = "a"', S, OTHERS), ""),
    (both("except", CHRONONS, S), "ends"),
    (both("intersect", S, CHRONONS), "ends"),
    (both("max union", S, CHRONONS), ""),
    # Sweeps join equal neighbours: more than table 12.1 allows for.
    (over("distinct", CHRONONS), "ends"),
    (over(COUNTED, CHRONONS), "ends"),
    (over('aggregate: COUNT(*) AS "n" BIGINT', S), "end ordered"),
    (over('top 3 by "k"', CHRONONS), "ends"),
    (over("window range 10 slide 5", CHRONONS), "lifetime 10; end ordered; ends"),
    (over("window range 10 slide 3", CHRONONS), "end ordered; ends"),
    (over("window range 2 slide 3", CHRONONS), "lifetime 3; end ordered; ends"),
    (over(WINDOW, S), ""),
    (over(WINDOW, COUNTED, CHRONONS), "lifetime 10; end ordered; ends"),
    (over(UNBOUNDED, CHRONONS), "endless; end ordered; accumulates"),
    (over("window rows 3", CHRONONS), "end ordered"),
    (over('window rows 3 partition by "k"', CHRONONS), ""),
    (over(HOP, S), "lifetime 2; end ordered; ends"),
    (over(SESSION, CHRONONS), "endless; end ordered; accumulates"),
    (over("granularity 5", CHRONONS), "lifetime 5; end ordered; ends"),
    (over("granularity 5", WINDOW, CHRONONS), "lifetime 10; end ordered; ends"),
    (over("granularity 3", WINDOW, CHRONONS), "end ordered; ends"),
    (over("granularity 3", S), ""),
    (over("granularity 5 offset 4", WINDOW, CHRONONS), "lifetime 10; end ordered; ends"),
    (over("sample 5 offset 4", S), "lifetime 1; end ordered; ends"),
    (over("sample 5", UNBOUNDED, CHRONONS), "lifetime 1; end ordered; ends; accumulates"),
    (over('stamp "at"', S), "lifetime 1; end ordered; ends"),
    # The erratum of table 12.1: the last piece may be shorter.
    (over("split 3", WINDOW, CHRONONS), "ends"),
    (over("split 5", WINDOW, CHRONONS), "lifetime 5; end ordered; ends"),
    (over("split 20", WINDOW, CHRONONS), "lifetime 10; end ordered; ends"),
    (over("split 1", COUNTED, CHRONONS), "lifetime 1; end ordered; ends"),
    (over("split 1", S), ""),
    (over("coalesce", CHRONONS), "ends"),
    (over("istream", S), "lifetime 1; end ordered; ends"),
    (over("dstream", UNBOUNDED, CHRONONS), "lifetime 1; end ordered; ends"),
    (over('to positive negative "sign"', S), "lifetime 1; end ordered; ends"),
    (over('from positive negative "sign"', 'to positive negative "sign"', S), ""),
]


@pytest.mark.parametrize(("plan", "expected"), TIMES, ids=[f"{i} {p.line()[:40]}" for i, (p, _) in enumerate(TIMES)])
def test_intervals(plan: n.Plan, expected: str):
    assert times(plan) == expected
    assert is_chronon(plan) == expected.startswith("lifetime 1;")


# -- whole plans ----------------------------------------------------------------------------------------------------

STATE = [
    (over('filter "f"', UNBOUNDED, CHRONONS), []),
    (over(COUNTED, WINDOW, CHRONONS), []),
    (over(COUNTED, UNBOUNDED, CHRONONS), [COUNTED]),
    (over("distinct", COUNTED, 'filter "f"', UNBOUNDED, CHRONONS), [COUNTED, "distinct"]),
    (over("distinct", 'aggregate: COUNT(*) AS "n" BIGINT', UNBOUNDED, CHRONONS), ['aggregate: COUNT(*) AS "n" BIGINT']),
    (over("istream", UNBOUNDED, CHRONONS), ["istream"]),
    (over("distinct", "istream", UNBOUNDED, CHRONONS), ["istream"]),
    (over("split 1", UNBOUNDED, CHRONONS), ["split 1"]),
    (over('top 3 by "k"', UNBOUNDED, CHRONONS), ['top 3 by "k"']),
    (over(WINDOW, UNBOUNDED, CHRONONS), [WINDOW]),
    (over("coalesce", SESSION, CHRONONS), ["coalesce"]),
    (over("coalesce", HOP, CHRONONS), []),
    (over("distinct", 'window rows 3 partition by "k"', CHRONONS), []),
    (over("distinct", CONSTANT), []),
    (both('inner join on "k" = "a"', FOR_EVER, T), ['inner join on "k" = "a"']),
    (both("except", FOR_EVER, CONSTANT), ["except"]),
    (both("union", FOR_EVER, S), []),
]


@pytest.mark.parametrize(("plan", "keepers"), STATE, ids=[f"{i} {p.line()[:40]}" for i, (p, _) in enumerate(STATE)])
def test_state_that_grows_for_ever(plan: n.Plan, keepers: list[str]):
    assert [node.line() for node in unbounded_state(plan)] == keepers


JOIN_STATE = [
    # Above a join: pairs are there as long as both sides are.
    ("inner", FOR_EVER, OTHERS, False),
    ("inner", FOR_EVER, f'aggregate by "a", "b"\n  window range unbounded\n    {T} chronons', True),
    ("inner", FOR_EVER, "constant (a BIGINT, b STRING) [(1, 'a')]", True),
    ("inner", CONSTANT, "constant (a BIGINT, b STRING) [(1, 'a')]", False),
    ("left", FOR_EVER, OTHERS, True),
    ("right", FOR_EVER, OTHERS, False),
    ("full", WINDOWED, OTHERS, False),
    ("full", FOR_EVER, OTHERS, True),
    ("semi", FOR_EVER, OTHERS, False),
    ("semi", FOR_EVER, "constant (a BIGINT, b STRING) [(1, 'a')]", True),
    ("anti", FOR_EVER, OTHERS, True),
    ("anti", WINDOWED, f"{UNBOUNDED}\n  {T} chronons", False),
]


@pytest.mark.parametrize(("kind", "left", "right", "accumulates"), JOIN_STATE)
def test_joins_that_accumulate(kind: str, left: str, right: str, accumulates: bool):
    assert properties(both(f'{kind} join on "k" = "a"', left, right)).accumulates == accumulates


def test_windows_of_one_instant_are_reducible():
    assert over("window range 1", S).reducible
    assert not over("window range 1 slide 2", S).reducible
    assert over("granularity 1", S).reducible
    assert not over("granularity 2", S).reducible
    assert over("sample 2", S).reducible
    assert over('stamp "at"', S).reducible


def test_questions_about_columns():
    plan = over(COUNTED, S)
    assert has_key(plan, ["k"])
    assert has_key(plan, ["n", "k"])
    assert not has_key(plan, ["n"])
    assert not nullable(plan, "n")
    assert nullable(over(S), "v")
    assert not properties(over(S)).duplicate_free


def test_the_schema_of_a_node_never_claims_more_than_is_known():
    for seed in range(200):
        for node in plans.plan(Dice(seed), depth=5).walk():
            known = properties(node).schema
            assert (known.names, known.types) == (node.schema.names, node.schema.types)
            assert all(claimed.nullable or not f.nullable for claimed, f in zip(node.schema, known, strict=True))


def test_every_node_is_looked_at_once():
    plan = plans.plan(Dice(3), depth=30)
    properties.cache_clear()
    properties(plan)
    distinct = len(list(plan.walk()))
    assert properties.cache_info().misses == distinct
    properties(parse_plan("distinct\n  source s (x INT)"))
    properties(plan)
    assert properties.cache_info().misses == distinct + 2

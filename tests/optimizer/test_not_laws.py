"""Equations that look like laws and are not: the two sides differ on some stream, and no rule makes one of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.optimizer.optimize import apply_rule, rules
from headwater.testing.checks import CheckError
from headwater.testing.equivalence import check_equivalent
from headwater.testing.plan_text import parse_plan

PAGE = Path(__file__).resolve().parents[2] / "docs" / "optimizer.md"
STREAMS = 50
S, T = "source s (k BIGINT, v INT) chronons", "source t (k BIGINT, v INT) chronons"

NOT_LAWS: dict[str, tuple[str, str]] = {
    "σ_p(ω_N(S)) = ω_N(σ_p(S))": (
        f'filter "v" > 1\n  window rows 2\n    {S}',
        f'window rows 2\n  filter "v" > 1\n    {S}',
    ),
    "ω_N(S1) ∪ ω_N(S2) = ω_N(S1 ∪ S2)": (
        f"union\n  window rows 2\n    {S}\n  window rows 2\n    {T}",
        f"window rows 2\n  union\n    {S}\n    {T}",
    ),
    "ω_w(δ(S)) = δ(ω_w(S))": (
        f'window range 4\n  distinct\n    project "k"\n      {S}',
        f'distinct\n  window range 4\n    project "k"\n      {S}',
    ),
    "ω_w(S1 ⋈ S2) = ω_w(S1) ⋈ ω_w(S2)": (
        f'window range 4\n  semi join on "k" = "k"\n    {S}\n    {T}',
        f'semi join on "k" = "k"\n  window range 4\n    {S}\n  window range 4\n    {T}',
    ),
    "ω_w(S1 − S2) = ω_w(S1) − ω_w(S2)": (
        f'window range 4\n  except all\n    project "k"\n      {S}\n    project "k"\n      {T}',
        f'except all\n  window range 4\n    project "k"\n      {S}\n  window range 4\n    project "k"\n      {T}',
    ),
    "ω_w(γ_g(S)) = γ_g(ω_w(S))": (
        f'window range 4\n  aggregate by "k": COUNT(*) as "n" BIGINT\n    {S}',
        f'aggregate by "k": COUNT(*) as "n" BIGINT\n  window range 4\n    {S}',
    ),
    "ω_w(α(S)) = α(ω_w(S))": (
        f'window range 4\n  aggregate: MAX("v") as "m" INT\n    {S}',
        f'aggregate: MAX("v") as "m" INT\n  window range 4\n    {S}',
    ),
    "ω_w(ω_v(S)) = ω_{w+v−1}(S)": (
        f"window range 2\n  window range 3\n    {S}",
        f"window range 4\n  {S}",
    ),
    "δ(S1 − S2) = δ(S1) − δ(S2)": (
        f'distinct\n  except all\n    project "k"\n      {S}\n    project "k"\n      {T}',
        f'except all\n  distinct\n    project "k"\n      {S}\n  distinct\n    project "k"\n      {T}',
    ),
    "μ_f(S1 − S2) = μ_f(S1) − μ_f(S2)": (
        f'project "k"\n  except all\n    {S}\n    {T}',
        f'except all\n  project "k"\n    {S}\n  project "k"\n    {T}',
    ),
    "σ_p(session_g(S)) = session_g(σ_p(S))": (
        f'filter "v" > 1\n  session gap 3 as "a", "b" BIGINT\n    {S}',
        f'session gap 3 as "a", "b" BIGINT\n  filter "v" > 1\n    {S}',
    ),
}


@pytest.mark.parametrize("equation", NOT_LAWS)
def test_the_sides_differ(equation: str):
    left, right = map(parse_plan, NOT_LAWS[equation])
    with pytest.raises(CheckError):
        check_equivalent(left, right, STREAMS, run=False)


@pytest.mark.parametrize("equation", NOT_LAWS)
def test_no_rule_uses_it(equation: str):
    left, right = map(parse_plan, NOT_LAWS[equation])
    for rule in rules():
        assert apply_rule(rule, left) != right, rule.name
        assert apply_rule(rule, right) != left, rule.name


def test_all_equations_of_the_page_are_here():
    _, _, table = PAGE.read_text(encoding="utf-8").partition("| not a law | why |")
    rows = table.partition("\n\n")[0].splitlines()
    assert [row.split("`")[1] for row in rows if row.startswith("| `")] == list(NOT_LAWS)

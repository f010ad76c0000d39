"""Plans from text, as tests write them: expressions in the SQL of the language, columns in double quotes."""

from __future__ import annotations

from headwater.algebra.nodes import Plan
from headwater.algebra.plan_parsing import parse_plan as parse
from headwater.language.expression_text import bind_text


def parse_plan(text: str) -> Plan:
    """The plan that the text of ``print_plan`` describes; raises a ``SqlError`` with the code PLAN_TEXT."""
    return parse(text, bind_text)

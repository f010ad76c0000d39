"""When the rows of an answer go out: with both ends, as soon as they begin, or as whole answers now and then."""
#  answer      a |-----------)             a is known at its start, half frozen until its end is (LMerge: half frozen)
#  ON CLOSE                  a             once, with both ends
#  ON START    a             a ends        at once, with an open end; the end follows
#  EVERY d     a     a     a               the whole answer at each multiple of d

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Any

from attrs import asdict, frozen
from sqlglot import exp

from headwater.algebra import nodes as n
from headwater.language.consistency import STRONG, Consistency
from headwater.language.durations import application_time, shown_duration
from headwater.language.parsing.syntax import EmitClause
from headwater.language.text import error_on


class Form(StrEnum):
    CLOSE = "ON CLOSE"
    """A row goes out when both its ends are final: rows are only ever added."""
    START = "ON START"
    """A row goes out when its start is final, with an open end; one adjust gives the end once it is final."""
    EVERY = "EVERY"
    """At each multiple of a period the whole answer, once it is final."""


@frozen
class Emission:
    """In which form the answer of a query goes out."""

    form: Form
    period: int = 0
    unit: bool = False
    """Was the period written with a unit? Only for printing."""

    def __str__(self) -> str:
        return f"EVERY {shown_duration(self.period, unit=self.unit)}" if self.period else self.form.value

    def to_manifest(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_manifest(cls, kept: dict[str, Any]) -> Emission:
        """What ``to_manifest`` described."""
        return cls(**kept | {"form": Form(kept["form"])})

    def of(self, plan: n.Plan) -> n.Plan:
        """The plan whose rows go out: a whole answer holds from one multiple of the period to the next."""
        return n.TimeWindow(n.Sample(plan, self.period), self.period) if self.period else plan


ON_CLOSE, ON_START = Emission(Form.CLOSE), Emission(Form.START)


def shown_emission(emission: Emission | None, consistency: Consistency | None) -> str:
    """When rows of a query go out, in a word or two; what may be repaired does not wait."""
    if (consistency or STRONG) != STRONG and not (emission and emission.period):
        return "at once"
    return str(emission) if emission is not None else "by sink"


def bind_emission(
    text: str, node: exp.Expr | None, consistency: Consistency | None, timestamps: Collection[bool]
) -> Emission | None:
    """What an EMIT clause asks for; None: what suits the sink. ``timestamps``: have the streams times with a unit?"""
    if not isinstance(node, EmitClause):
        return None
    if node.this != Form.EVERY:
        if consistency not in (None, STRONG):
            raise error_on(
                text,
                node,
                "EMIT",
                f"EMIT {node.this} is for final answers, not for CONSISTENCY {consistency}",
                detail="Answers that may be repaired go out at once, as a changelog.",
                hint="Leave out one of the two clauses.",
            )
        return ON_START if node.this == Form.START else ON_CLOSE
    period = application_time(text, node.args["period"], "the period of EMIT EVERY")
    if period == 0:
        raise error_on(text, node, "EMIT", "the period of EMIT EVERY must be longer than 0")
    unit = node.args["period"].args.get("unit")
    if (unit is None) in timestamps:
        message, hint = "EMIT EVERY takes no unit: the streams count time in plain numbers", ""
        if unit is None:
            message = "EMIT EVERY needs a unit: the streams have TIMESTAMPs"
            hint = f"For example: EMIT EVERY {node.args['period'].this} SECONDS."
        raise error_on(text, unit or node, "TIME_UNIT", message, hint=hint)
    return Emission(Form.EVERY, period, unit is not None)

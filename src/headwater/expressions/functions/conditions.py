"""Functions of conditions and of NULL. Those that are another form of CASE or of an operator are bound to that."""

from __future__ import annotations

from headwater.expressions.functions.record import MANY, Function

CONDITIONS: dict[str, Function] = {
    "coalesce": Function(1, MANY, "COALESCE({args})", alike=0, spark="coalesce({args})"),
    "greatest": Function(2, MANY, "GREATEST({args})", further="ordered", alike=0),
    "least": Function(2, MANY, "LEAST({args})", further="ordered", alike=0),
    "nullif": Function(2, 2, "NULLIF({args})", alike=0),
}

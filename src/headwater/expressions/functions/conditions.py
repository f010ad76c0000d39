"""Functions of conditions and of NULL. Those that are another form of CASE or of an operator are bound to that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.expressions.functions.record import MANY, Function
from headwater.expressions.nodes import Expression


def _spark_extreme(name: str) -> Callable[[Sequence[Expression]], str]:
    def text(arguments: Sequence[Expression]) -> str:
        types = [a.type for a in arguments]
        return "" if any(pa.types.is_boolean(t) or pa.types.is_nested(t) for t in types) else f"{name}({{args}})"

    return text


CONDITIONS: dict[str, Function] = {
    "coalesce": Function(1, MANY, "COALESCE({args})", alike=0, spark="coalesce({args})"),
    "greatest": Function(2, MANY, "GREATEST({args})", further="ordered", alike=0, spark=_spark_extreme("greatest")),
    "least": Function(2, MANY, "LEAST({args})", further="ordered", alike=0, spark=_spark_extreme("least")),
    "nullif": Function(2, 2, "NULLIF({args})", alike=0),
}

"""ω_{w,a}(S1) ∪ ω_{w,a}(S2) ≐ ω_{w,a}(S1 ∪ S2), in either direction.

Above the union there is one window instead of two; below it an input's window can be shared with other queries.
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan, TimeWindow, Union
from headwater.optimizer.rule import Context, rule


@rule(
    Union,
    TimeWindow,
    law="ω_{w,a}(S1) ∪ ω_{w,a}(S2) ≐ ω_{w,a}(S1 ∪ S2)",
    condition="the same w and a on both sides",
    source="Krämer 10.10, with slide 17.1",
    choice=True,
)
def window_over_union(plan: Union | TimeWindow, context: Context) -> Plan | None:
    match plan:
        case Union(left=TimeWindow() as left, right=TimeWindow() as right):
            if (left.size, left.slide) == (right.size, right.slide):
                return evolve(left, input=Union(left.input, right.input))
        case TimeWindow(input=Union() as union):
            return Union(evolve(plan, input=union.left), evolve(plan, input=union.right))
    return None

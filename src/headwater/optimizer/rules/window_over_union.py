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
        case Union(inputs=(TimeWindow() as first, *_) as sides):
            windows = [w for w in sides if isinstance(w, TimeWindow) and (w.size, w.slide) == (first.size, first.slide)]
            if len(windows) == len(sides):
                return evolve(first, input=Union(tuple(window.input for window in windows)))
        case TimeWindow(input=Union() as union):
            return union.with_inputs(*(evolve(plan, input=side) for side in union.inputs))
    return None

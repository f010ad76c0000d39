"""μ_f(ω_{w,a}(S)) ≐ ω_{w,a}(μ_f(S)), in either direction.

Below the window fewer columns are split and carried; above it the window can be shared with other queries (Example 10.2).
"""

from __future__ import annotations

from attrs import evolve

from headwater.algebra.nodes import Plan, Project, TimeWindow
from headwater.optimizer.rule import Context, rule


@rule(
    Project,
    TimeWindow,
    law="μ_f(ω_{w,a}(S)) ≐ ω_{w,a}(μ_f(S))",
    source="Krämer 10.9, with slide 17.1",
    choice=True,
)
def project_through_time_window(plan: Project | TimeWindow, context: Context) -> Plan | None:
    match plan:
        case Project(input=TimeWindow() as window):
            return evolve(window, input=evolve(plan, input=window.input))
        case TimeWindow(input=Project() as project):
            return evolve(project, input=evolve(plan, input=project.input))
    return None

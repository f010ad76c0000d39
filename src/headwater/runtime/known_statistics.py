"""What a plan is made with: of each figure the best that is known of the streams it reads.

What is declared counts more than what was measured, that more than what the footers of files say, and that more than a
guess. A replay knows only what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from headwater.algebra.nodes import Plan
from headwater.language.catalog import Catalog, Stream
from headwater.model.time import MICROSECONDS
from headwater.optimizer.cost import Statistics, StreamStatistics
from headwater.optimizer.estimation.statistics import DECLARED, FOOTERS, MEASURED, Figure
from headwater.runtime.measured import measured_figures

if TYPE_CHECKING:
    from headwater.runtime.core import Core


def declared_statistics(streams: Iterable[Stream]) -> Statistics:
    """What users said."""
    return Statistics({s.name: StreamStatistics.of(_declared(s)) for s in streams if s.statistics})


def known_statistics(
    plan: Plan, catalog: Catalog, core: Core, footers: Callable[[str], Mapping[str, float]]
) -> Statistics:
    """All that is known now of the streams of a plan; ``footers``: what the files of a stream say."""
    found: dict[str, StreamStatistics] = {}
    for name in plan.streams:
        stream = catalog.get(name)
        if isinstance(stream, Stream):
            in_files = {n: Figure(float(f"{value:.3g}"), FOOTERS) for n, value in footers(name).items()}
            figures = in_files | _measured(name, core) | _declared(stream)
            found[name] = StreamStatistics.of(dict(sorted(figures.items())))
    return Statistics(found)


def _declared(stream: Stream) -> dict[str, Figure]:
    second = MICROSECONDS["SECOND"] if stream.has_unit else 1
    return {n: Figure(value / second if n == "rate" else value, DECLARED) for n, value in stream.statistics}


def _measured(stream: str, core: Core) -> dict[str, Figure]:
    manifest, graph = core.manifest, core.deployment.layout.graph
    figures = dict(measured_figures(manifest.measured.get(stream, {}), manifest.counts.get(stream, {}).get("rows", 0)))
    if stream in graph.relations:
        key = graph.nodes[graph.relations[stream]].key
        standing = [its[key]["rows"] for its in manifest.records.values() if key in its]
        if standing:
            figures["rows"] = Figure(float(sum(standing)), MEASURED)
    return figures

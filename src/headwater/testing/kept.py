"""What a graph that was run by hand still keeps."""

from __future__ import annotations

from headwater.runtime.executor import LocalExecutor
from headwater.runtime.stepping import StepRunner
from headwater.state.manifest import state_segments


def saved_segments(runner: StepRunner) -> list[str]:
    """The names of the segments that the states of all operators refer to."""
    executor = runner._executor
    assert isinstance(executor, LocalExecutor)
    operators = {node.key: node.operator for node in runner.layout.graph.nodes}
    states = [(operators[key], state) for (_, key, _), (_, state) in executor._cache._states.items()]
    return list(state_segments([operator.save(state) for operator, state in states if operator is not None]))

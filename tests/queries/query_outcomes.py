"""What comes out of a case, as the text of its expected block."""

from __future__ import annotations

from collections.abc import Sequence

from query_corpus import FOLDER, Case, Table, answer
from query_runs import WAYS, Way, bound, recorded, tables

from headwater.backends.explain import shown
from headwater.errors import HeadwaterError
from headwater.runtime.replay import replay


def outcome(case: Case, way: Way = WAYS[0]) -> tuple[str, Sequence[Table] | None]:
    """The text, and for a query its tables."""
    match case.kind:
        case "error":
            return mistake(case), None
        case "notice":
            return "\n".join(map(str, bound(case).notices)), None
        case "shows":
            script = bound(case)
            return "\n".join(shown(answer, script.settings) for answer in script.answers), None
    found = tables(case, *way)
    return answer(found, case.recording.scale), found


def mistake(case: Case) -> str:
    """What is said about a script that cannot be bound, or cannot be run."""
    try:
        script = bound(case)
        if script.result or script.named:
            replay(script, recorded(case.streams, case.recording), history=True)
    except HeadwaterError as problem:
        return str(problem).replace(f"{FOLDER}/", "")
    raise AssertionError("nothing is wrong with this")

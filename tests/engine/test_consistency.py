"""Levels of consistency in the engine: side by side over one stream, in its own time and by the wall clock."""

from __future__ import annotations

import headwater as hw
from headwater.clock.wall import VirtualClock
from headwater.runtime.core import Core

SECOND = 1_000_000


def forgotten(core: Core, query: str) -> int:
    keys = {core.deployment.layout.graph.nodes[i].key for i in core.deployment.layout.graph.below(query)}
    kept = [r for its in core.manifest.records.values() for key, r in its.items() if key in keys]
    return sum(record.get("counts", {}).get("forgotten", 0) for record in kept)


def shown(run: hw.Run) -> list[tuple[int, int]]:
    return sorted((row["k"], row["_start"]) for row in run.history().rows())


def test_every_level_sees_the_same_stream_in_its_own_way():
    with hw.connect(runner="inprocess") as engine:
        script = engine.script(
            """
            CREATE STREAM s (k INT, t BIGINT) ORDERED BY t DISORDER 100;
            CREATE STREAM sure AS SELECT k FROM s CONSISTENCY STRONG;
            CREATE STREAM waits AS SELECT k, COUNT(*) AS n FROM s GROUP BY k CONSISTENCY BLOCK 3 REMEMBER UNBOUNDED;
            CREATE STREAM early AS SELECT k, COUNT(*) AS n FROM s GROUP BY k CONSISTENCY MIDDLE;
            CREATE STREAM hasty AS SELECT k, COUNT(*) AS n FROM s GROUP BY k CONSISTENCY WEAK REMEMBER 2;
            """
        )
        with engine.held():
            runs = {query.name: query.start() for query in script.queries}
        for k, t in [(1, 10), (2, 12), (3, 11), (4, 20), (5, 17)]:
            engine.push("s", [{"k": k, "t": t}])
        assert shown(runs["waits"]) == [(1, 10), (2, 12), (3, 11), (5, 17)]
        assert shown(runs["early"]) == [(1, 10), (2, 12), (3, 11), (4, 20), (5, 17)]
        assert shown(runs["hasty"]) == [(1, 10), (2, 12), (3, 11), (4, 20)]
        core = engine._core
        assert [forgotten(core, name) for name in runs] == [0, 0, 0, 1]
        engine.run_to_end()
        assert shown(runs["sure"]) == shown(runs["waits"]) == shown(runs["early"])


def test_by_the_wall_clock_rows_wait_and_are_forgotten():
    clock = VirtualClock()
    with hw.connect(runner="inprocess", clock=clock) as engine:
        (query,) = engine.script(
            """
            CREATE STREAM s (k INT, t BIGINT) ORDERED BY t DISORDER 1000;
            CREATE STREAM c AS SELECT k, COUNT(*) AS n FROM s GROUP BY k
                CONSISTENCY BLOCK 1 SECOND REMEMBER 5 SECONDS BY WALL CLOCK;
            """
        ).queries
        run = query.start()
        engine.push("s", [{"k": 1, "t": 10}])
        assert shown(run) == []
        clock.advance(3 * SECOND // 2)
        engine.push("s", [{"k": 2, "t": 20}])
        assert shown(run) == [(1, 10)]
        clock.advance(6 * SECOND)
        engine.push("s", [{"k": 3, "t": 30}])
        assert shown(run) == [(1, 10), (2, 20)]
        assert run.frontier == 20
        engine.push("s", [{"k": 4, "t": 19}])
        assert shown(run) == [(1, 10), (2, 20)]
        assert forgotten(engine._core, "c") == 1

"""The kernels are compiled ahead by running every operator once: what set-up does, and only mentions if it fails."""

from __future__ import annotations

from headwater.runtime.warmup import warm_up


def test_every_operator_runs_a_few_rows():
    warm_up()

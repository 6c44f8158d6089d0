"""The simulation of families of repeated trials: what a fixed baseline is."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations import trials


def test_trials_do_not_move_a_fixed_baseline() -> None:
    draws = [
        trials.draw_trials(np.random.default_rng(3), sd, is_fixed=True).mean(axis=2)
        for sd in (0.0, 10.0)
    ]
    assert draws[0][0].tolist() == draws[1][0].tolist()
    assert np.abs(draws[0][1:] - draws[1][1:]).min() > 0.01


def test_a_fixed_baseline_is_counted_in_every_run() -> None:
    promise = trials.run_fixed(0.0, 3, draws=3)
    assert (promise.runs, promise.limit) == (3, 0.07)
    assert promise.design == "sd of trials 0, 3 trials, a fixed baseline"


def test_the_limit_is_at_least_as_wide_as_the_estimate() -> None:
    limit, estimate, ratio = trials.run_few(2, 40, 0.05, draws=50)
    assert limit.count >= estimate.count
    assert limit.limit == 0.94
    assert ratio.value > 1.2

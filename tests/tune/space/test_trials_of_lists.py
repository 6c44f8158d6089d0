"""An objective over lists of several files: values are means over these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.tune.objective import TuningObjective
from tests.tune.cases import aligned
from tests.tune.problems import problem

TRIALS = [aligned(seed=seed) for seed in range(3)]
PARAMS = [{"fusion.weights.good": weight} for weight in (0.5, 2.0)]


def objective(count: int) -> TuningObjective:
    made = problem(ranges={"fusion.weights.good": {"low": 0.0, "high": 3.0}}, runs=TRIALS[0])
    return replace(made, later_trials=tuple(TRIALS[1:count]))


def test_a_value_is_the_mean_over_trials() -> None:
    alone = [replace(objective(1), runs=runs).evaluate_params(PARAMS) for runs in TRIALS]
    assert np.ptp(alone, axis=0).max() > 0
    expected = np.mean(alone, axis=0)
    assert np.allclose(objective(3).evaluate_params(PARAMS), expected, rtol=0, atol=1e-15)
    keep = np.arange(len(TRIALS[0].queries)) % 3 > 0
    part = objective(3).subset_queries(keep)
    assert np.allclose(part.evaluate_params(PARAMS), expected[:, keep], rtol=0, atol=1e-15)


def test_each_trial_can_be_asked_for() -> None:
    repeated = objective(3)
    system = repeated.build_system(PARAMS[0])
    values = repeated.evaluate_by_trial(system)
    assert values is not None
    for row, runs in zip(values, TRIALS, strict=True):
        alone = replace(objective(1), runs=runs).evaluate_params(PARAMS[:1])
        assert row.tolist() == alone[0].tolist()
    assert objective(1).evaluate_by_trial(system) is None


def test_what_cannot_be_computed_on_one_trial_has_no_value() -> None:
    repeated, params = objective(2), {"fusion.weights.good": -1.0}
    assert np.isnan(repeated.evaluate_params([params, PARAMS[0]])[0]).all()
    assert repeated.failure_reason(params)
    with pytest.raises(ConfigError):
        repeated.build_system(params)

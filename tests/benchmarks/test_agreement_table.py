"""The table of intervals of kappa, at toy size; and its formula for independent pairs."""

import numpy as np
import pytest

from benchmarks.studies.agreement_table import (
    METHODS,
    format_table,
    large_sample_error,
    list_intervals,
    simulate_design,
)
from fusion_bench.stats.agreement import make_weights, measure_kappa


def test_the_formula_is_the_jackknife_where_pairs_are_independent() -> None:
    rng = np.random.default_rng(1)
    shares = np.array([[0.3, 0.1, 0.0], [0.05, 0.2, 0.1], [0.0, 0.05, 0.2]])
    cells = rng.choice(9, size=4_000, p=shares.ravel())
    counts = np.eye(9, dtype=np.int64)[cells].reshape(-1, 3, 3)  # each pair is a query
    kappa = measure_kappa(counts, make_weights((0, 1, 2), "none"))
    error = large_sample_error(counts.sum(axis=0))
    assert (kappa.high - kappa.low) / 2 / 1.96 == pytest.approx(error, rel=0.01)


def test_queries_that_differ_make_the_formula_too_narrow() -> None:
    low, high = np.diag([0.5, 0.5]), np.full((2, 2), 0.25)
    shares = np.stack([low, high, low, high])
    counts = (40 * shares).astype(np.int64)
    weights = make_weights((0, 1), "none")
    intervals = list_intervals(counts, weights, np.random.default_rng(2))
    widths = [intervals[method][1] - intervals[method][0] for method in METHODS]
    assert widths[0] < widths[1] < widths[2]
    design = simulate_design(shares, "a and b", 8, 40, runs=40, seed=(3,))
    assert design.truth == pytest.approx(0.5)
    assert design.covered[METHODS[0]] < 30 < design.covered[METHODS[2]]
    assert "| a and b | 0.500 | 8 | 40 |" in format_table([design])

"""The simulation of max-T computes what the package computes."""

import numpy as np
import pytest

from benchmarks.studies.simulations import max_t as simulation
from fusion_bench.stats.max_t import FamilyRow, max_t


@pytest.mark.parametrize("kind", simulation.SAMPLERS)
def test_its_short_cut_is_the_package_itself(kind: str) -> None:
    values = simulation.SAMPLERS[kind](np.random.default_rng(1), 40)
    values[0] += 0.1
    keys = tuple(f"q{i}" for i in range(40))
    shown, critical = simulation.decide(values, keys, seed=3)
    rows = [FamilyRow(row, keys) for row in values]
    flips = simulation.FLIPS
    family = max_t(rows, seed=3, first_draws=flips, most_draws=flips)
    assert [row.p <= simulation.ALPHA for row in family.rows] == shown[0].tolist()
    assert critical == pytest.approx(family.critical_value)

"""The simulation of joint coverage computes what the package computes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies.simulations import joint_coverage
from fusion_bench.stats.max_t import FamilyRow, max_t


@pytest.mark.parametrize("kind", joint_coverage.KINDS)
def test_joint_coverage_uses_the_package_s_own_critical_value(kind: str) -> None:
    errors = joint_coverage.draw_errors(np.random.default_rng(2), kind, 5, 25)
    keys = tuple(f"q{i}" for i in range(25))
    joint, alone = joint_coverage.critical_values(errors, keys, seed=3)
    flips = joint_coverage.FLIPS
    for i, effect in enumerate(joint_coverage.EFFECTS):
        rows = [FamilyRow(row + effect, keys) for row in errors]
        family = max_t(rows, seed=3, first_draws=flips, most_draws=flips)
        assert joint[i] == pytest.approx(family.rows[0].critical_value)
        assert alone[i] <= joint[i]

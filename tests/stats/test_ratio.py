"""The interval of a ratio of paired means."""

from __future__ import annotations

import numpy as np
import pytest

from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.ratio import ratio_interval

GROUPS = np.arange(80)


def test_the_ends_are_the_ratios_that_a_paired_test_just_rejects() -> None:
    generator = np.random.default_rng(2)
    bottom = 0.1 + 0.1 * generator.normal(size=80)
    top = 0.4 * bottom + 0.03 * generator.normal(size=80)
    found = ratio_interval(top, bottom, GROUPS)
    assert found is not None
    ratio, low, high = found
    assert ratio == pytest.approx(top.mean() / bottom.mean())
    assert low < ratio < high
    for end, side in ((low, "low"), (high, "high")):
        rest = estimate_mean(top - end * bottom, GROUPS)
        assert getattr(rest, side) == pytest.approx(0, abs=1e-9)


def test_no_ratio_without_a_shown_denominator() -> None:
    generator = np.random.default_rng(3)
    assert ratio_interval(np.ones(80), generator.normal(size=80), GROUPS) is None
    assert ratio_interval(np.ones(1), np.ones(1), GROUPS[:1]) is None


def test_it_covers_the_true_ratio() -> None:
    generator = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        bottom = 0.05 + 0.1 * generator.normal(size=80)
        top = 0.5 * bottom + 0.05 * generator.normal(size=80)
        found = ratio_interval(top, bottom, GROUPS)
        covered += found is not None and found[1] <= 0.5 <= found[2]
    assert 0.92 <= covered / 400 <= 0.98

"""What a check cannot guard is said, with a number of queries that would indeed do."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.gate.check_statistics import Check, run_checks
from fusion_bench.gate.power_check import check_power, power_warning
from fusion_bench.gate.result import CheckResult
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, read_project
from tests.tiny import edit


def check(difference: list[float] | np.ndarray, m: float, groups: int = 1) -> CheckResult:
    """What the gate finds for these differences."""
    size = len(difference)
    codes = np.arange(size) // groups
    [found] = run_checks([Check("c", None, "RR", m, np.zeros(size), np.array(difference), codes)])
    return CheckResult(**asdict(found), few_changed=found.few_changed)


def test_the_queries_that_are_asked_for_would_do() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    found = check(difference, 0.02)
    words = power_warning(found)
    assert words is not None
    assert words.startswith(
        f"with 60 queries only drops of {found.min_detectable_drop:.4f} or more are "
    )
    asked = int(re.findall(r"about ([\d,]+) queries", words)[0].replace(",", ""))
    times = -(-asked // 60)
    assert power_warning(check(np.tile(difference, times), 0.02)) is None
    assert power_warning(check(np.tile(difference, times // 4), 0.02)) is not None


@pytest.mark.parametrize(
    ("difference", "m", "words"),
    [
        ([0.5, -0.5] * 20, 0.4, None),  # the tolerance is greater than the noise
        ([0.5, -0.5] * 3 + [0.0] * 54, 0.001, None),  # few changed: no statistics, and said so
        ([0.0] * 60, 0.0, None),
        ([0.5, -0.5] * 20, 0.0, "max_drop 0 is a wish: no number of queries would do"),
    ],
)
def test_when_nothing_is_wished(difference: list[float], m: float, words: str | None) -> None:
    found = power_warning(check(difference, m))
    assert found == words or (words is not None and str(found).endswith(words))


def test_groups_are_named() -> None:
    difference = np.random.default_rng(3).normal(0, 0.2, 60)
    assert "with 60 queries in 20 groups only" in str(
        power_warning(check(difference, 0.01, groups=3))
    )


def test_an_update_foresees_it_by_the_other_system(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    folders = [root / "datasets"]
    found = check_power(*read_project(root), folders=folders)
    assert found[0].startswith("mine / RR@10: with 60 queries in 30 groups only drops of 0.0")
    assert found[0].endswith("(by the spread of live against plain)")
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [gone]}")
    assert check_power(*read_project(root), folders=folders) == ()  # nothing tells the spread


def test_an_experiment_of_one_system_foresees_nothing(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    edit(root, EXPERIMENT, "  plain: {runs: [a, b]}\n", "")
    edit(root, EXPERIMENT, "baseline: plain\n", "baseline: live\n")
    assert check_power(*read_project(root), folders=[root / "datasets"]) == ()

"""The verdict by a table."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.report.tuning_records import TuningVerdict
from fusion_bench.tune.trial_selection import ChosenTrial, decide_verdict
from tests.report.tuning_cases import gain


def test_linked_queries_that_nobody_declared_withhold_ship_alone() -> None:
    shown, lost = gain(0.1, 0.05, 0.15, p=0.001), gain(-0.1, -0.15, -0.05, p=0.001)
    assert decide_verdict(shown, groups_decide=True) == "groups decide"
    assert decide_verdict(lost, groups_decide=True) == "worse"
    assert decide_verdict(shown, groups_decide=True, unjudged_decide=True) == "unjudged decide"


@pytest.mark.parametrize(
    ("low", "high", "changed", "verdict"),
    [
        (0.001, 0.9, {"p": 0.05}, "ship"),
        (0.001, 0.9, {"p": 0.0501}, "too few queries"),
        (0.006, 0.9, {"p": 0.001, "wins": 6, "losses": 0}, "ship"),
        (0.001, 0.0049, {"p": 0.001}, "keep"),
        (0.001, 0.0049, {"p": 0.001, "wins": 9, "losses": 0}, "ship"),
        (-0.01, 0.0049, {"p": 0.5}, "keep"),
        (-0.01, 0.0049, {"p": 0.5, "wins": 5, "losses": 4}, "too few queries"),
        (-0.01, 0.0049, {"p": 0.5, "wins": 5, "losses": 5}, "keep"),
        (-0.01, 0.0049, {"p": 0.5, "groups": 19}, "too few queries"),
        (-0.01, 0.005, {"p": 0.5}, "too few queries"),
        (-0.01, -0.001, {"p": 0.01}, "worse"),
        (-0.01, -0.001, {"p": 0.01, "wins": 0, "losses": 6}, "worse"),
        (-0.01, 0.0, {"p": 0.05}, "keep"),
        (0.0, 0.0, {"p": 1, "wins": 0, "losses": 0}, "too few queries"),
        (None, None, {"p": 1}, "too few queries"),
    ],
)
def test_the_held_out_queries_decide(
    low: float | None, high: float | None, changed: dict[str, Any], verdict: TuningVerdict
) -> None:
    middle = 0.0 if low is None or high is None else (low + high) / 2
    assert decide_verdict(gain(middle, low, high, **changed)) == verdict


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"min_gain": 0.03}, "keep"),
        ({"min_gain": 0.0}, "ship"),
        ({"level": 0.02}, "too few queries"),
        ({"chosen": "default over better trials"}, "too few tuning queries"),
        ({"chosen": "default"}, "keep"),
        ({"unjudged_decide": True, "chosen": "default over better trials"}, "unjudged decide"),
    ],
)
def test_what_else_counts(options: dict[str, Any], verdict: TuningVerdict) -> None:
    assert decide_verdict(gain(0.01, 0.001, 0.02, p=0.045), **options) == verdict


@pytest.mark.parametrize(("chosen", "verdict"), [("tuned", "ship"), ("default", "keep")])
def test_the_choice_of_the_default_is_no_gain(chosen: ChosenTrial, verdict: TuningVerdict) -> None:
    assert decide_verdict(gain(0.02, 0.01, 0.03), chosen=chosen) == verdict

"""Which queries decide, by ``tune.held_out`` and the number of queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.report.tuning_page import describe_split
from fusion_bench.tune.splits import SIMULATED, choose_split
from tests.tune.cases import aligned

RESULTS = Path(__file__).parents[3] / "benchmarks/studies/simulations/results/few_queries.json"


@pytest.mark.parametrize(
    ("count", "settings", "design", "reason"),
    [
        (149, {}, "all", "149 queries are fewer than 150"),
        (150, {}, "share", "150 queries are 150 or more"),
        (60, {"sampler": "qmc", "choose": "best"}, "all", "60 queries are fewer than 150"),
        (60, {"sampler": "tpe"}, "share", "sampler: tpe is set"),
        (60, {"by_intent": True}, "share", "by_intent is set"),
        (60, {"by_query_type": True}, "share", "by_query_type is set"),
        (60, {"crag": {"top": 3}}, "share", "crag is set"),
        (60, {"looks": {"max_queries": 90}}, "share", "looks.max_queries is set"),
        (60, {"choose": "one_standard_error"}, "share", "choose: one_standard_error is set"),
        (60, {"folds": 0}, "share", "folds: 0 is set"),
        (60, {"front": {"trials": 8}}, "share", "front is set"),
        (60, {"front": {"method": "none"}}, "all", "60 queries are fewer than 150"),
        (60, {"effort": {"price": 2.0}}, "share", "effort is set"),
        (60, {"held_out": 0.4}, "share", ""),
        (400, {"held_out": "all"}, "all", ""),
    ],
)
def test_the_split_and_its_reason(
    count: int, settings: dict[str, Any], design: str, reason: str
) -> None:
    tuning = TuneSettings.model_validate({"system": "tuned", **settings})
    split, choice = choose_split(aligned(count), {}, tuning)
    assert choice.design == design
    assert choice.reason.startswith(reason)
    assert bool(choice.reason) == (tuning.held_out == "auto")
    assert split.is_cross_fitted == (design == "all")
    assert bool(choice.power) == (count < 150)
    assert bool(describe_split(choice)) == (tuning.held_out == "auto")


def test_the_simulated_power_is_that_of_the_simulation() -> None:
    promises = json.loads(RESULTS.read_text())["promises"]
    shares = {(p["design"], p["event"]): p["count"] / p["runs"] for p in promises}
    for row in SIMULATED:
        design = f"{row.collection}, n = {row.queries}, true gain"
        half, cross = (f"ships: {rule}" for rule in ("half split", "cross-fitting, flips"))
        assert shares[design, half] == pytest.approx(row.half_split)
        assert shares[design, cross] == pytest.approx(row.cross_fitting)

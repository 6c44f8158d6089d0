"""Lucene's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fusion_bench.engines.dialects.lucene import Lucene
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from tests.engines.cases import ROLES, scores


def system(**fusion: object) -> System:
    return System("s", ["bm25", "dense"], dialect="lucene", fusion=fusion)


def test_rrf() -> None:
    """TestTopDocsRRF.testBasics (10.x): k = 20."""
    lists = {
        "bm25": {"q": {"42": 10.0, "10": 5.0, "20": 3.0}},
        "dense": {"q": {"10": 10.0, "20": 5.0}},
    }
    fused = scores(system(k=20), lists)
    assert list(fused) == ["10", "20", "42"]
    assert {n: float(np.float32(score)) for n, score in fused.items()} == {
        "10": float(np.float32(1 / 22 + 1 / 21)),
        "20": float(np.float32(1 / 23 + 1 / 22)),
        "42": float(np.float32(1 / 21)),
    }


def _logit(chance: float) -> float:
    return math.log(chance / (1 - chance))


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.mark.parametrize(
    ("options", "both", "one"),
    [
        # By hand, by LogOddsFusionScoreFunction: n = 2 lists, 0.9 and 0.2; then 0.9 alone.
        ({}, 2**0.5 * (_logit(0.9) + _logit(0.2)) / 2, 2**0.5 * _logit(0.9) / 2),
        ({"alpha": 0}, (_logit(0.9) + _logit(0.2)) / 2, _logit(0.9) / 2),
        (
            {"weights": {"bm25": 0.25, "dense": 0.75}},
            2**0.5 * (0.25 * _logit(0.9) + 0.75 * _logit(0.2)),
            2**0.5 * 0.25 * _logit(0.9),
        ),
        (
            {"gating": "softplus", "alpha": 1},
            math.log1p(math.exp(_logit(0.9))) + math.log1p(math.exp(_logit(0.2))),
            math.log1p(math.exp(_logit(0.9))),
        ),
        (
            {"signal_base_rates": {"bm25": 0.1}, "base_rate": 0.3, "alpha": 1},
            _logit(0.3) + _logit(0.9) - _logit(0.1) + _logit(0.2),
            _logit(0.3) + _logit(0.9) - _logit(0.1),
        ),
        (
            {"logit_bounds": {"bm25": (-1, 4), "dense": (0, 1)}, "alpha": 1},
            (1 + _logit(0.9)) / 5,
            (1 + _logit(0.9)) / 5,
        ),
    ],
)
def test_log_odds(options: Mapping[str, Any], both: float, one: float) -> None:
    lists = {"bm25": {"q": {"a": 0.9, "b": 0.9}}, "dense": {"q": {"a": 0.2}}}
    fused = scores(system(method="LogOddsFusionQuery", **options), lists)
    assert fused == pytest.approx({"a": _sigmoid(both), "b": _sigmoid(one)})


def test_scores_are_kept_from_zero_and_one() -> None:
    lists = {"bm25": {"q": {"a": 1.0, "b": 0.0}}, "dense": {"q": {"a": 25.0}}}
    fused = scores(system(method="LogOddsFusionQuery", alpha=0), lists)
    assert fused == pytest.approx({"a": 1 - 1e-7, "b": _sigmoid(_logit(1e-7) / 2)})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": {"bm25": 0.25, "dense": 0.75}, "alpha": 1e-7, "base_rate": 0.5},
        {"signal_base_rates": {"dense": 0.1}, "gating": "softplus"},
        {"logit_bounds": {"bm25": (-1.5, 4), "dense": (0, 1e-3)}},
    ],
)
def test_a_query_of_log_odds_is_read_back(options: Mapping[str, Any]) -> None:
    query = System(
        "s", ["bm25", "dense"], dialect="lucene", fusion={"method": "LogOddsFusionQuery", **options}
    )
    files = Lucene.write(query).files
    again = System.model_validate({"name": "s", **Lucene.read(files)})
    lists = {"bm25": {"q": {"a": 0.9, "b": 0.4}}, "dense": {"q": {"a": 0.2, "c": 0.6}}}
    assert scores(again, lists) == scores(query, lists)
    assert Lucene.write(again).files == files


@pytest.mark.parametrize(
    "options",
    [
        {"gating": "softplus", "logit_bounds": {"bm25": (0, 1)}},
        {"logit_bounds": {"bm25": (1, 0)}},
        {"alpha": 2},
        {"base_rate": 1},
    ],
)
def test_what_lucene_refuses(options: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError):
        system(method="LogOddsFusionQuery", **options)


def test_weights_of_log_odds_must_add_up_to_one() -> None:
    wrong = system(method="LogOddsFusionQuery", weights={"bm25": 0.5, "dense": 0.6})
    ((_, error), *_) = wrong.find_misfits(ROLES, [])
    assert "sum of 1" in str(error)


def test_weights_of_rrf_are_lost() -> None:
    fusion = {"method": "rrf", "weights": {"dense": 2.0}}
    translation = Lucene.translate(System("s", ["bm25", "dense"], fusion), ROLES)
    assert translation.fidelity == "approximate"
    assert Lucene.translate(System("s", ["bm25", "dense"]), ROLES).fidelity == "exact"


def test_our_log_odds_are_its_log_odds() -> None:
    fusion = {"method": "log_odds", "normalize": "none", "weights": {"dense": 3.0}, "exponent": 0.7}
    ours = System("s", ["bm25", "dense"], fusion)
    translation = Lucene.translate(ours, ROLES)
    assert translation.fidelity == "exact"
    assert translation.system is not None
    lists = {"bm25": {"q": {"a": 0.9, "b": 0.4}}, "dense": {"q": {"a": 0.2, "c": 0.6}}}
    assert scores(translation.system, lists) == pytest.approx(scores(ours, lists))
    assert Lucene.translate(System("s", ["bm25", "dense"], "log_odds"), ROLES).system is None

"""A normalizer for each source, by name or role; and the logistic curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers

ROLES = {"bm25": frozenset({"keyword"}), "dense": frozenset({"semantic", "question"})}
LISTS = {
    "bm25": {"x": 12.0, "y": 6.0, "z": 4.0},
    "dense": {"x": 0.2, "y": 0.6},
}
EACH: dict[str, Any] = {
    "method": "by_source",
    "sources": {
        "bm25": "min_max",
        "semantic": {"method": "theoretical_min_max", "lo": {"semantic": -1}},
    },
}


def aligned() -> AlignedRuns:
    runs = [Run.from_dict(name, {"q": found}, roles=ROLES[name]) for name, found in LISTS.items()]
    return align(Qrels.from_dict({"q": {"x": 1}}), runs)


def scaled(config: Any) -> dict[str, list[float]]:  # noqa: ANN401 - as in YAML
    """Source → scores of x, y, z as far as it returned them."""
    runs = aligned()
    values = normalizers.build(config).normalize_scores(runs)
    order = np.argsort([runs.vocabulary[d] for d in runs.documents])
    return {
        name: [float(row[n]) for n in order if not math.isnan(row[n])]
        for name, row in zip(runs.sources, values, strict=True)
    }


def test_each_source_has_its_own() -> None:
    assert scaled(EACH) == {
        "bm25": pytest.approx([1, 0.25, 0]),
        "dense": pytest.approx([1.2 / 1.6, 1.0]),
    }


@pytest.mark.parametrize(("default", "dense"), [(None, [0.2, 0.6]), ("rank", [0.5, 1.0])])
def test_others_have_the_default(default: str | None, dense: list[float]) -> None:
    config = {"method": "by_source", "sources": {"keyword": "min_max"}}
    found = scaled(config if default is None else {**config, "default": default})
    assert found == {"bm25": pytest.approx([1, 0.25, 0]), "dense": pytest.approx(dense)}


@pytest.mark.parametrize("method", ["weighted_score", "weighted_sum", "comb_mnz", "max_score"])
def test_every_score_method_takes_it(method: str) -> None:
    runs = aligned()
    fusion = fusions.build({"method": method, "normalize": EACH})
    assert fusions.build(fusion.model_dump(mode="json")) == fusion
    x = dict(zip([runs.vocabulary[d] for d in runs.documents], fusion.fuse(runs), strict=True))["x"]
    total = 1 + 1.2 / 1.6
    expected = {
        "weighted_score": total / 2,
        "weighted_sum": total,
        "comb_mnz": 2 * total,
        "max_score": 1.0,
    }
    assert x == pytest.approx(expected[method])


@pytest.mark.parametrize("method", ["weighted_score", "comb_sum"])
@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"bm52": "min_max"}, "normalize.sources: 'bm52' fits no source in use"),
        ({"semantic": "rank", "dense": "rank"}, "'semantic' and 'dense' both fit source 'dense'"),
    ],
)
def test_a_key_fits_one_source_as_weights_do(
    method: str, sources: dict[str, str], message: str
) -> None:
    fusion = {"method": method, "normalize": {"method": "by_source", "sources": sources}}
    system = System.model_validate({"name": "s", "runs": tuple(LISTS), "fusion": fusion})
    with pytest.raises(ConfigError, match=message):
        system.active_runs(aligned())


def test_the_normalizer_alone_refuses_two_keys_too() -> None:
    with pytest.raises(ConfigError, match=r"normalize: 'keyword'.*'bm25'"):
        scaled({"method": "by_source", "sources": {"keyword": "rank", "bm25": "rank"}})


def test_an_error_of_a_normalizer_names_it() -> None:
    lacking = {"method": "theoretical_min_max", "lo": {"bm25": 0}}
    with pytest.raises(AlignmentError, match=r"'lo'.*'dense'"):
        scaled({"method": "by_source", "sources": {"dense": lacking}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "by_source"}, "sources: is required"),
        ({"method": "by_source", "sources": {}}, "sources: dictionary should have at least 1"),
        ({"method": "by_source", "sources": {"a": "nope"}}, "unknown normalizer 'nope'"),
        ({**EACH, "constant": 0}, "constant belongs into each normalizer"),
        ({"method": "logistic", "alpha": 0}, "alpha: input should be greater than 0"),
        ({"method": "logistic", "base_rate": 1}, "base_rate: input should be less than 1"),
    ],
)
def test_a_configuration_that_breaks_a_rule(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        normalizers.build(config)


def test_logistic_is_one_half_at_the_median_unless_relevance_is_rare() -> None:
    plain = scaled("logistic")["bm25"]
    deviation = math.sqrt(((12 - 22 / 3) ** 2 + (6 - 22 / 3) ** 2 + (4 - 22 / 3) ** 2) / 3)
    assert plain == pytest.approx(
        [1 / (1 + math.exp(-6 / deviation)), 0.5, 1 / (1 + math.exp(2 / deviation))]
    )
    rare = scaled({"method": "logistic", "base_rate": 0.01})["bm25"]
    assert rare[1] == pytest.approx(0.01)


def test_logistic_with_constants_is_the_bayesian_score_of_lucene() -> None:
    found = scaled({"method": "logistic", "alpha": 0.5, "beta": 4, "base_rate": 0.01})["bm25"]
    prior = math.log(0.01 / 0.99)
    expected = [1 / (1 + math.exp(-(0.5 * (score - 4) + prior))) for score in (12, 6, 4)]
    assert found == pytest.approx(expected)


def test_logistic_of_equal_scores_is_the_constant() -> None:
    runs = align(Qrels.from_dict({"q": {"x": 1}}), [Run.from_dict("a", {"q": {"x": 3.0}})])
    for constant in (0.5, 1.0):
        scale = normalizers.build({"method": "logistic", "constant": constant})
        assert scale.normalize_scores(runs).tolist() == [[constant]]

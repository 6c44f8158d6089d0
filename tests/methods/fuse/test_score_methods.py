"""Fusions of scores: the worked examples, terms, errors; tests/oracle has the obvious loop."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.explanation import explain_ranking
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions
from tests.oracle.score_methods import METHODS

Lists = Mapping[str, Mapping[str, float]]
PAIR: Lists = {"a": {"x": 0.8}, "b": {"x": 0.5}, "c": {"y": 0.1}}
ROLES = {"a": frozenset({"semantic"}), "b": frozenset({"keyword"})}


def aligned(lists: Lists) -> AlignedRuns:
    runs = [
        Run.from_dict(n, {"q": found}, roles=ROLES.get(n, frozenset()))
        for n, found in lists.items()
    ]
    return align(Qrels.from_dict({"q": {"x": 1}}), runs)


def scores(config: Mapping[str, Any], lists: Lists) -> dict[str, float]:
    runs = aligned(lists)
    fused = fusions.build(dict(config)).fuse(runs).tolist()
    return {runs.vocabulary[d]: x for d, x in zip(runs.documents.tolist(), fused, strict=True)}


@pytest.mark.parametrize(
    ("config", "lists", "expected"),
    [
        (
            {"method": "tm2c2"},
            {"a": {"x": 0.6, "y": 0.8}, "b": {"x": 12.0, "y": 16.0}},
            (1.6 / 1.8 + 0.75) / 2,
        ),
        (
            {"method": "tm2c2", "alpha": 0.9},
            {"a": {"x": 0.6, "y": 0.8}, "b": {"x": 12.0, "y": 16.0}},
            0.9 * 1.6 / 1.8 + 0.1 * 0.75,
        ),
        ({"method": "dbsf"}, {"a": {"x": 3.0, "y": 2.0, "z": 1.0}, "b": {"x": 7.0}}, 2 / 3 + 0.5),
        (  # Apache Lucene's formula: mean logit .896, times √2, through σ
            {"method": "log_odds", "normalize": "none"},
            {"a": {"x": 0.8}, "b": {"x": 0.6}},
            1 / (1 + math.exp(-math.sqrt(2) * (math.log(4) + math.log(1.5)) / 2)),
        ),
        ({"method": "log_odds", "normalize": "none"}, {"a": {"x": 0.8}, "b": {"x": 0.6}}, 0.7802),
        (  # Lucene 10.5: softplus of the logits, 1.6094 and .9163
            {"method": "log_odds", "normalize": "none", "gating": "softplus"},
            {"a": {"x": 0.8}, "b": {"x": 0.6}},
            1 / (1 + math.exp(-math.sqrt(2) * (math.log(5) + math.log(2.5)) / 2)),
        ),
        (  # bayesian-bm25: σ(n^a · Σ w·logit P), and a = 0 where weights are given
            {"method": "log_odds", "normalize": "none", "weights": {"a": 0.7, "b": 0.3}}
            | {"exponent": 0.0},
            {"a": {"x": 0.8}, "b": {"x": 0.6}},
            1 / (1 + math.exp(-(0.7 * math.log(4) + 0.3 * math.log(1.5)))),
        ),
    ],
)
def test_worked_examples(config: dict[str, Any], lists: Lists, expected: float) -> None:
    assert scores(config, lists)["x"] == pytest.approx(expected, rel=1e-4)


WEIGHTED = {"mixed", "comb_mnz", "wmnz", "weighted_sum", "dbsf", "max_score", "tm2c2", "log_odds"}


# Explanations ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "given_by"),
    [
        ("comb_max", {"a": 0.8}),
        ("comb_min", {"c": 0.1}),
        ("comb_med", {"b": 0.5}),
        ("max_score", {"a": 0.8}),
    ],
)
def test_an_explanation_names_the_source_whose_score_it_is(
    method: str, given_by: dict[str, float]
) -> None:
    lists = {"a": {"x": 0.8}, "b": {"x": 0.5}, "c": {"x": 0.1}}
    config = {"method": method, "normalize": "none"}
    system = System.model_validate({"name": "s", "runs": tuple(lists), "fusion": config})
    trace = explain_ranking(system, aligned(lists), "q").find_trace("x")
    assert trace is not None
    assert {term.source: term.value for term in trace.terms if term.value} == given_by
    assert trace.recomputed_score == trace.score


def test_the_evidence_of_each_source_adds_up_to_the_probability() -> None:
    runs = aligned({"a": {"x": 0.8}, "b": {"x": 0.3}, "c": {"x": 0.6}})
    fusion = fusions.build({"method": "log_odds", "normalize": "none"})
    parts = fusion.score_terms(runs)
    assert parts.labels == ("no evidence", "a", "b", "c", "rounding")
    assert [np.sign(row[0]) for row in parts.terms[:-1]] == [1, 1, -1, 1]
    assert abs(parts.terms[-1, 0]) < 1e-16
    assert parts.scores.tolist() == fusion.fuse(runs).tolist()


def test_strong_evidence_against_documents_keeps_its_digits() -> None:
    lists = {name: {"x": 2e-6, "y": 1e-6} for name in "abcd"}
    config = {"method": "log_odds", "normalize": "none", "exponent": 1.0}
    for document, p in {"x": 2e-6, "y": 1e-6}.items():
        odds = (p / (1 - p)) ** 4  # about 1e-23, far below the last digit of one half
        assert scores(config, lists)[document] == pytest.approx(odds / (1 + odds), rel=1e-12)


def test_no_document_reaches_more_than_greatest_scores_below_0_allow() -> None:
    runs = aligned({"a": {"x": -1.0, "y": -2.0}, "b": {"x": 5.0}})
    config = {"method": "weighted_sum", "normalize": "none"}
    assert fusions.build(config | {"missing": "min"}).max_possible(runs).tolist() == [4.0]
    assert fusions.build(config | {"missing": "zero"}).max_possible(runs).tolist() == [5.0]


# Errors and tuning -------------------------------------------------------------------------------


def test_log_odds_and_tm2c2_say_what_they_need() -> None:
    with pytest.raises(AlignmentError, match=r"log_odds.*'a'.*12"):
        scores({"method": "log_odds", "normalize": "none"}, {"a": {"x": 12.0}, "b": {"x": 0.5}})
    with pytest.raises(AlignmentError, match="'lo' for source 'c'"):
        scores({"method": "tm2c2"}, PAIR)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "comb_gmnz", "gamma": -1}, "gamma: input"),
        ({"method": "comb_sum", "weights": {"a": 1}}, "weights: unknown key"),
        ({"method": "weighted_sum", "missing": "skip"}, "missing: input"),
        ({"method": "tm2c2", "lo": {}}, "lo: dictionary"),
        ({"method": "log_odds", "exponent": 2}, "exponent: input"),
        ({"method": "max_score", "normalize": "nope"}, "normalize: unknown normalizer"),
    ],
)
def test_a_configuration_that_breaks_a_rule(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build(config)


@pytest.mark.parametrize("method", [*METHODS])
def test_what_can_be_tuned_is_a_field(method: str) -> None:
    fusion = fusions.build(method)
    paths = [parameter.path for parameter in fusion.space(("a", "b"))]
    assert {path.split(".")[0] for path in paths} <= set(type(fusion).model_fields)
    assert any(path.startswith("weights.") for path in paths) == (method in WEIGHTED)
    if "normalize" in type(fusion).model_fields:
        assert "normalize.method" in paths

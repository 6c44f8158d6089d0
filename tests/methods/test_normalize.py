"""Normalizers, one for all lists or one a source."""

import math
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import Normalizer, ScoreLists, normalizers

Config = dict[str, object]


def scaled(scores: list[float], config: Config) -> list[float]:
    """Normalized scores of one list, in the order given."""
    names = [f"d{n}" for n in range(len(scores))]
    run = Run.from_dict(
        "dense", {"q": dict(zip(names, scores, strict=True))}, roles=frozenset({"semantic"})
    )
    other = Run.from_dict("bm25", {"q": {"elsewhere": 1.0}})
    runs = align(Qrels.from_dict({"q": {"d0": 1}}), [run, other])
    values = normalizers.build(config).normalize_scores(runs)[0]
    by_name = {runs.vocabulary[d]: float(x) for d, x in zip(runs.documents, values, strict=True)}
    assert np.isnan(by_name["elsewhere"])
    return [by_name[name] for name in names]


def test_constants_where_the_divisor_is_0() -> None:
    assert scaled([0.0, 0.0], {"method": "l2", "constant": 0.5}) == [0.5, 0.5]
    theoretical: Config = {"method": "theoretical_min_max", "lo": {"dense": 2.0, "bm25": 0.0}}
    assert scaled([2.0, 2.0], {**theoretical, "constant": 0.5}) == [0.5, 0.5]
    assert scaled([3.0, 3.0], theoretical) == [1.0, 1.0]
    assert normalizers.build("min_max").constant == 1


def test_what_a_normalizer_is_given_of_each_list() -> None:
    """Of three queries the source returns nothing for the second; ranks are in stored order."""
    lists: list[ScoreLists] = []

    class Recorder(Normalizer):
        method: str = "recorder"

        def scale_lists(self, lists_: ScoreLists) -> FloatArray:
            lists.append(lists_)
            return lists_.scores

    roles = frozenset({"keyword"})
    given = Run.from_dict("x", {"p": {"a": 1.0, "b": 3.0}, "r": {"c": 2.0}}, roles=roles)
    other = Run.from_dict("y", {"p": {"c": 1.0}, "q": {"a": 1.0}, "r": {"c": 1.0}})
    qrels = Qrels.from_dict({query: {"a": 1} for query in "pqr"})
    Recorder().normalize_scores(align(qrels, [given, other]))
    first = lists[0]
    assert (first.name, first.roles) == ("x", roles)
    assert (first.scores.tolist(), first.ranks.tolist()) == ([3.0, 1.0, 2.0], [1, 2, 1])
    assert (first.starts.tolist(), first.lengths.tolist()) == ([0, 2], [2, 1])
    assert (first.owner.tolist(), first.pool.tolist()) == ([0, 0, 1], [3, 3, 1])
    assert (first.list_minimum().tolist(), first.list_length().tolist()) == ([1, 1, 2], [2, 2, 1])


@pytest.mark.parametrize("scores", [[-1.0, -2.0], [0.0]])
def test_max_is_refused_where_it_means_nothing(scores: list[float]) -> None:
    with pytest.raises(
        AlignmentError,
        match=r"'dense': .* -?[01], .*; use min_max",
    ):
        scaled(scores, {"method": "max"})


@pytest.mark.parametrize(
    ("lo", "message"),
    [
        ({"bm25": 0.0}, "source 'dense':"),
        ({"dense": 0.0, "semantic": 0.0}, "source 'dense': dense"),
        ({"semantic": 1.5}, "score 1 below"),
    ],
)
def test_theoretical_min_max_needs_one_true_lo(lo: dict[str, float], message: str) -> None:
    with pytest.raises(AlignmentError, match=message):
        scaled([2.0, 1.0], {"method": "theoretical_min_max", "lo": lo})


def test_theoretical_min_max_needs_a_lo_at_all() -> None:
    with pytest.raises(ConfigError, match="lo: is required"):
        normalizers.build("theoretical_min_max")
    with pytest.raises(ConfigError, match=r"lo: .* 1 item"):
        normalizers.build({"method": "theoretical_min_max", "lo": {}})


def test_scales_see_the_list_after_the_cut() -> None:
    run = Run.from_dict("a", {"q": {"x": 4.0, "y": 3.0, "z": 0.0}})
    runs = align(Qrels.from_dict({"q": {"x": 1}}), [run]).restrict(["a"], {"a": 2})
    assert normalizers.build("min_max").normalize_scores(runs).tolist() == [[0.0, 1.0]]
    assert normalizers.build("rank").normalize_scores(runs).tolist() == [[0.5, 1.0]]
    a, b = Run.from_dict("a", {"q": {"x": 1.0}}), Run.from_dict("b", {"r": {"x": 1.0}})
    runs = align(Qrels.from_dict({"q": {"x": 1}, "r": {"x": 1}}), [a, b])
    part = runs.subset(np.array([True, False]))
    found = normalizers.build("min_max").normalize_scores(part)
    assert found[0].tolist() == [1.0]
    assert np.isnan(found[1]).all()


# ── A normalizer for each source, by name or role; and the logistic curve


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


def scaled_by_source(config: Any) -> dict[str, list[float]]:  # noqa: ANN401 - as in YAML
    """Source → scores of x, y, z as far as it returned them."""
    runs = aligned()
    values = normalizers.build(config).normalize_scores(runs)
    order = np.argsort([runs.vocabulary[d] for d in runs.documents])
    return {
        name: [float(row[n]) for n in order if not math.isnan(row[n])]
        for name, row in zip(runs.sources, values, strict=True)
    }


def test_each_source_has_its_own() -> None:
    assert scaled_by_source(EACH) == {
        "bm25": pytest.approx([1, 0.25, 0]),
        "dense": pytest.approx([1.2 / 1.6, 1.0]),
    }


@pytest.mark.parametrize(("default", "dense"), [(None, [0.2, 0.6]), ("rank", [0.5, 1.0])])
def test_others_have_the_default(default: str | None, dense: list[float]) -> None:
    config = {"method": "by_source", "sources": {"keyword": "min_max"}}
    found = scaled_by_source(config if default is None else {**config, "default": default})
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
        ({"bm52": "min_max"}, "normalize.sources: 'bm52'"),
        ({"semantic": "rank", "dense": "rank"}, "'semantic' and 'dense'"),
    ],
)
def test_a_key_fits_one_source_as_weights_do(
    method: str, sources: dict[str, str], message: str
) -> None:
    fusion = {"method": method, "normalize": {"method": "by_source", "sources": sources}}
    system = System.model_validate({"name": "s", "runs": tuple(LISTS), "fusion": fusion})
    with pytest.raises(ConfigError, match=message):
        system.active_runs(aligned())


def test_two_keys_and_errors_of_a_normalizer_are_named() -> None:
    with pytest.raises(ConfigError, match=r"normalize: 'keyword'.*'bm25'"):
        scaled_by_source({"method": "by_source", "sources": {"keyword": "rank", "bm25": "rank"}})
    lacking = {"method": "theoretical_min_max", "lo": {"bm25": 0}}
    with pytest.raises(AlignmentError, match=r"'lo'.*'dense'"):
        scaled_by_source({"method": "by_source", "sources": {"dense": lacking}})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"method": "by_source"}, "sources: is required"),
        ({"method": "by_source", "sources": {}}, "sources: dictionary"),
        ({"method": "by_source", "sources": {"a": "nope"}}, "unknown normalizer 'nope'"),
        ({**EACH, "constant": 0}, "constant belongs"),
        ({"method": "logistic", "alpha": 0}, "alpha: input"),
        ({"method": "logistic", "base_rate": 1}, "base_rate: input"),
    ],
)
def test_a_configuration_that_breaks_a_rule(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        normalizers.build(config)


def test_logistic_is_one_half_at_the_median_or_the_bayesian_score_of_lucene() -> None:
    plain = scaled_by_source("logistic")["bm25"]
    deviation = math.sqrt(((12 - 22 / 3) ** 2 + (6 - 22 / 3) ** 2 + (4 - 22 / 3) ** 2) / 3)
    assert plain == pytest.approx(
        [1 / (1 + math.exp(-6 / deviation)), 0.5, 1 / (1 + math.exp(2 / deviation))]
    )
    rare = scaled_by_source({"method": "logistic", "base_rate": 0.01})["bm25"]
    assert rare[1] == pytest.approx(0.01)
    found = scaled_by_source({"method": "logistic", "alpha": 0.5, "beta": 4, "base_rate": 0.01})[
        "bm25"
    ]
    prior = math.log(0.01 / 0.99)
    expected = [1 / (1 + math.exp(-(0.5 * (score - 4) + prior))) for score in (12, 6, 4)]
    assert found == pytest.approx(expected)
    runs = align(Qrels.from_dict({"q": {"x": 1}}), [Run.from_dict("a", {"q": {"x": 3.0}})])
    for constant in (0.5, 1.0):
        scale = normalizers.build({"method": "logistic", "constant": constant})
        assert scale.normalize_scores(runs).tolist() == [[constant]]

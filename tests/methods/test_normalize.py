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

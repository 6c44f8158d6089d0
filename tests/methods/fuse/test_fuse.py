"""What every fusion has: names, roles, weights and aliases."""

from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import Fusion, fusions

SOURCES = ("bm25", "dense", "hyde")
ROLES = [frozenset({"keyword"}), frozenset({"question", "semantic"}), frozenset({"hyde"})]


def view(**lists: dict[str, float]) -> AlignedRuns:
    roles = dict(zip(SOURCES, ROLES, strict=True))
    runs = [Run.from_dict(name, {"q": docs}, roles=roles[name]) for name, docs in lists.items()]
    return align(Qrels.from_dict({"q": {"a": 1}, "without": {"a": 1}}), runs)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"dense": 1, "question": 2}, "'dense' and 'question'"),
        (
            {"graph": 1},
            r"'graph' fits no source in use \(names and roles in use: bm25, dense, hyde, keyword, "
            r"question, semantic\)",
        ),
        ({"bm25": 0, "dense": 0, "hyde": 0}, "every source weighs 0:"),
    ],
)
@pytest.mark.parametrize("method", ["rrf", "weighted_score"])
def test_weights_that_fit_wrongly(method: str, weights: dict[str, float], message: str) -> None:
    fusion = fusions.build({"method": method, "weights": weights})
    with pytest.raises(ConfigError, match=f"weights: {message}"):
        fusion.source_weights(SOURCES, ROLES)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"k": -1}, "k: input"),
        ({"k": 1001}, "k: input"),
        ({"weights": {"a": -1}}, r"weights\.a: input"),
        (
            {"normalize": "max"},
            "normalize: input",
        ),
    ],
)
@pytest.mark.parametrize("method", ["rrf", "rrf_v2"])
def test_values_that_break_a_rule(method: str, config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build({"method": method} | config)


@pytest.mark.parametrize("bonus", [{0: 0.1}, {1: -0.1}, {1: float("inf")}])
def test_bonuses_that_break_a_rule(bonus: dict[int, float]) -> None:
    with pytest.raises(ConfigError, match=r"bonus\."):
        fusions.build({"method": "rrf_v2", "bonus": bonus})


def test_a_base_fusion_weighs_every_source_alike_and_bonuses_by_rank() -> None:
    fusion = fusions.build({"method": "rrf_v2", "bonus": {10: 0.01, 1: 0.05, 3: 0.02}})
    assert list(fusion.model_dump()["bonus"]) == [1, 3, 10]
    fusion = fusions.build("weighted_score")
    assert Fusion.source_weights(fusion, SOURCES, ROLES).tolist() == [1, 1, 1]


def test_rrf_v2_needs_a_question_that_weighs_something() -> None:
    fusion = fusions.build("rrf_v2")
    assert fusion.source_weights(SOURCES, ROLES).tolist() == [1, 2, 1]
    with pytest.raises(ConfigError, match=r"hyde, keyword\)"):
        fusion.source_weights(("bm25", "hyde"), [ROLES[0], ROLES[2]])
    with pytest.raises(ConfigError, match=r"in use: none\)"):
        fusion.source_weights(("bm25",), [frozenset()])
    off = fusions.build({"method": "rrf_v2", "weights": {"question": 0}})
    with pytest.raises(ConfigError, match=r"'question'.*0"):
        off.source_weights(SOURCES, ROLES)


def test_greatest_possible_scores() -> None:
    runs = view(bm25={"a": 4.0, "b": 1.0}, dense={"b": -3.0}, hyde={"c": -5.0})
    cases: list[tuple[dict[str, object], float]] = [
        ({"method": "rrf"}, 3 / 61),
        ({"method": "rrf", "normalize": "max_possible"}, 1.0),
        ({"method": "rrf", "weights": {"bm25": 9}, "normalize": "three_lists"}, 1.0),
        ({"method": "rrf_v2"}, 4 / 61 + 0.05),
        ({"method": "rrf_v2", "bonus": {1: 0.01, 5: 0.04}}, 4 / 61 + 0.04),
        ({"method": "rrf_v2", "bonus_scope": "per_source"}, 4 / 61 + 0.15),
        ({"method": "rrf_v2", "bonus": {}}, 4 / 61),
        ({"method": "weighted_score"}, 4.0),
        ({"method": "weighted_score", "missing": "zero"}, 4 / 3),
        ({"method": "weighted_score", "missing": "min"}, -4 / 3),
    ]
    for config, expected in cases:
        assert fusions.build(config).max_possible(runs)[0] == pytest.approx(expected, rel=1e-15)


def test_greatest_possible_score_of_a_query_without_candidates() -> None:
    runs = view(bm25={"a": 4.0})
    for missing, expected in (("skip", np.nan), ("min", np.nan), ("zero", 0.0)):
        fusion = fusions.build({"method": "weighted_score", "missing": missing})
        np.testing.assert_array_equal(fusion.max_possible(runs), [4.0, expected])


# ── other names of fusion methods, and one number in place of two weights


KEYWORD, SEMANTIC, BOTH = (
    frozenset({"keyword"}),
    frozenset({"semantic"}),
    frozenset({"semantic", "question"}),
)
CONVEX = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}
COMBSUM = {"method": "comb_sum", "normalize": "none"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("convex", CONVEX),
        ("Convex", CONVEX),
        ("wsum", {"method": "weighted_sum", "normalize": "min_max", "missing": "zero"}),
        *((ranx, {"method": f"comb_{ranx}"}) for ranx in ("sum", "max", "min", "med")),
        *((ranx, {"method": f"comb_{ranx}"}) for ranx in ("anz", "mnz", "gmnz")),
        ("CombMNZ", {"method": "comb_mnz"}),
        ({"method": "gmnz", "gamma": 2}, {"method": "comb_gmnz", "gamma": 2}),
        ("combsum", COMBSUM),
        ("CombSUM", COMBSUM),
        ("comb-sum", COMBSUM),
        ("RRF", {"method": "rrf"}),
        ("reciprocal_rank_fusion", {"method": "rrf"}),
        ({"method": "reciprocal_rank_fusion", "k": 20}, {"method": "rrf", "k": 20}),
        ({"method": "convex", "normalize": "z_score"}, {**CONVEX, "normalize": "z_score"}),
        ({"method": "convex", "weights": {"a": 2}}, {**CONVEX, "weights": {"a": 2}}),
    ],
)
def test_an_alias_is_a_method_with_parameters(given: object, meant: dict[str, Any]) -> None:
    assert fusions.build(given) == fusions.build(meant)
    assert fusions.build(given).model_dump()["method"] == meant["method"]


def test_every_alias_can_be_built_or_is_suggested() -> None:
    for name in fusions.aliases:
        assert fusions.build(name).method in fusions.load_built_in()
    with pytest.raises(ConfigError, match="mean 'convex'"):
        fusions.build("convx")


@pytest.mark.parametrize("method", ["rrf", "weighted_score", "convex"])
@pytest.mark.parametrize(
    ("alpha", "roles", "weights"),
    [
        (0.7, [KEYWORD, SEMANTIC], [0.3, 0.7]),
        (0.7, [BOTH, KEYWORD], [0.7, 0.3]),
        (0.7, [frozenset(), SEMANTIC], [0.3, 0.7]),
        (1, [KEYWORD, SEMANTIC], [0, 1]),
        (0, [KEYWORD, SEMANTIC], [1, 0]),
        (1, [SEMANTIC], [1]),  # the other source weighs 0 and takes no part
        (0, [KEYWORD], [1]),
    ],
)
def test_alpha_weighs_the_semantic_source(
    method: str, alpha: float, roles: list[frozenset[str]], weights: list[float]
) -> None:
    fusion = fusions.build({"method": method, "alpha": alpha})
    names = ("bm25", "dense")[: len(roles)]
    assert fusion.source_weights(names, roles) == pytest.approx(weights)


@pytest.mark.parametrize(
    "roles",
    [[KEYWORD, KEYWORD], [SEMANTIC, BOTH], [KEYWORD, SEMANTIC, KEYWORD], [SEMANTIC], [KEYWORD]],
)
def test_alpha_needs_one_semantic_source_and_one_other(roles: list[frozenset[str]]) -> None:
    fusion = fusions.build({"method": "rrf", "alpha": 0.7})
    with pytest.raises(ConfigError, match=r"alpha .* weights: \{SOURCE"):
        fusion.source_weights(("a", "b", "c")[: len(roles)], roles)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.1}, "alpha: input"),
        ({"alpha": float("nan")}, "alpha: input"),
        ({"alpha": 0.5, "weights": {"a": 1}}, "alpha and weights"),
        ({"method": "rrf_v2", "alpha": 0.5}, "alpha: unknown key"),
    ],
)
def test_an_alpha_that_breaks_a_rule(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fusions.build({"method": "rrf"} | options)


def test_a_report_names_alpha_only_where_it_is_given() -> None:
    assert "alpha" not in fusions.build("rrf").model_dump()
    fusion = fusions.build({"method": "rrf", "alpha": 0.25})
    assert fusion.model_dump()["alpha"] == 0.25
    assert fusions.build(fusion.model_dump()) == fusion

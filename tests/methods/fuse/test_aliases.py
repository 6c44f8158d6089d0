"""Other names of fusion methods, and one number in place of two weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import fusions

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


def test_every_alias_can_be_built() -> None:
    for name in fusions.aliases:
        assert fusions.build(name).method in fusions.load_built_in()


def test_combsum_orders_by_the_plain_sum() -> None:
    lists = {"a": {"x": 3.0, "y": 2.5}, "b": {"y": 1.0, "z": 3.2}}
    runs = align(
        Qrels.from_dict({"q": {"x": 1}}),
        [Run.from_dict(name, {"q": documents}) for name, documents in lists.items()],
    )
    order = np.argsort(-fusions.build("combsum").fuse(runs))
    assert [runs.vocabulary[runs.documents[i]] for i in order] == ["y", "z", "x"]


def test_a_name_near_an_alias_is_suggested() -> None:
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
        ({"alpha": 1.1}, "alpha: input should be less than or equal to 1"),
        ({"alpha": float("nan")}, "alpha: input should be"),
        ({"alpha": 0.5, "weights": {"a": 1}}, "alpha and weights exclude each other"),
        ({"method": "rrf_v2", "alpha": 0.5}, "alpha: unknown key 'alpha'"),
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

"""What a system does, in words made from its configuration."""

from typing import Any

import pytest

from fusion_bench.experiment.system import System
from fusion_bench.experiment.system_words import describe_config, describe_system, join_names
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from tests.contract.cases import REQUIRED

PAIR = ["a", "b"]
LTR = {"reranker": "ltr", "depth": 50}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"runs": ["a"]}, "the list a alone"),
        ({"runs": PAIR}, "RRF (k 60) of a and b"),
        (
            {"runs": ["a", "b", "c"], "fusion": {"method": "rrf", "k": 10}},
            "RRF (k 10) of a, b and c",
        ),
        (
            {"runs": PAIR, "fusion": {"method": "rrf", "k": {"a": 20, "b": 5.5}}},
            "RRF (k 20 for a and 5.5 for b) of a and b",
        ),
        (
            {"runs": PAIR, "fusion": {"method": "rrf", "weights": {"b": 0.5, "a": 1}}},
            "RRF (k 60) of a and b, b ×.5",
        ),
        (
            {"runs": PAIR, "fusion": {"method": "rrf", "normalize": "max_possible"}},
            "RRF (k 60, normalize max_possible) of a and b",
        ),
        (
            {"runs": PAIR, "fusion": "rrf_v2"},
            "RRF (k 60) of a and b, question ×2, bonus .05 at rank 1 and .02 at ranks 2–3",
        ),
        (
            {"runs": PAIR, "fusion": {"method": "weighted_score", "missing": "skip"}},
            "mean of raw scores of a and b, over the lists with the document",
        ),
        (
            {"runs": PAIR, "fusion": {"method": "convex", "alpha": 0.7}},
            "mean of min-max scores of a and b, semantic ×.7 and the other ×.3, 0 for a list "
            "without the document",
        ),
        ({"runs": PAIR, "fusion": {"method": "rbc", "phi": 0.5}}, "rbc (phi .5) of a and b"),
        (
            {"runs": PAIR, "blend": {"method": "replace", **LTR}},
            "RRF (k 60) of a and b, first 50 reordered by ltr",
        ),
        (
            {"runs": ["a"], "blend": {"method": "linear", **LTR, "tail": "drop"}},
            "the list a, first 50 reordered by 1 × ltr, the rest dropped",
        ),
        (
            {"runs": PAIR, "blend": {"method": "linear", "beta": 0.7, **LTR}, "top_k": 10},
            "RRF (k 60) of a and b, first 50 reordered by .7 × ltr + .3 × the fused score, "
            "cut at 10",
        ),
        (
            {"runs": PAIR, "blend": {"method": "position_aware", "tiers": {3: 0.75}, **LTR}},
            "RRF (k 60) of a and b, first 50 reordered by ltr and the fused score, which "
            "weighs .75 at ranks 1–3 and .4 below",
        ),
        ({"runs": PAIR, "depth": 100}, "RRF (k 60) of a and b, each list cut at 100"),
        ({"runs": PAIR, "depth": {"a": 5}}, "RRF (k 60) of a and b, a cut at 5"),
        (
            {"runs": PAIR, "weights_by_type": {"hybrid": {"a": 0.4, "b": 0.6}}},
            "RRF (k 60) of a and b, parameters by query type",
        ),
        (
            {
                "runs": ["s", "c"],
                "stages": {"s": {"runs": PAIR, "fusion": {"method": "rrf", "k": 5}}},
            },
            "RRF (k 60) of s and c; s: RRF (k 5) of a and b",
        ),
    ],
)
def test_every_part_of_a_configuration_has_words(keys: dict[str, Any], words: str) -> None:
    assert describe_system(System.model_validate({"name": "x", **keys})) == words


def test_every_method_and_blend_has_words() -> None:
    for method in fusions.load_built_in():
        fusion = {"method": method, **REQUIRED.get(method, {})}
        words = describe_system(
            System.model_validate({"name": "x", "runs": PAIR, "fusion": fusion})
        )
        assert "a and b" in words, method
    for method in blends.load_built_in():
        blend = {"method": method, **({} if method == "none" else LTR)}
        words = describe_system(System.model_validate({"name": "x", "runs": PAIR, "blend": blend}))
        assert ("first 50 reordered by" in words) == (method != "none"), method


def test_a_configuration_that_cannot_be_built_has_no_words() -> None:
    assert describe_config("x", {"runs": ["a"]}) == ("x: the list a alone.",)
    assert describe_config("x", {"runs": ["a"], "fusion": {"method": "of tomorrow"}}) == ()
    assert describe_config("x", None) == ()


def test_many_names_are_counted() -> None:
    assert join_names([]) == ""
    assert join_names(["a"]) == "a"
    assert join_names([f"n{i}" for i in range(9)]).endswith("n7 and n8")
    assert join_names([f"n{i}" for i in range(12)]).endswith("n7 and 4 more")

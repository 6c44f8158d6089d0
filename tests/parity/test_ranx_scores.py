"""Methods over scores equal ranx's per document; where they do not, the reason stands."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import fusions
from tests.parity.test_ranx import NORMALIZERS, Ranked, Ranx, aligned, assert_close, by_document

WEIGHTS = {"bm25": 0.3, "dense": 0.7, "hyde": 1.6}
PARAMETERS = {"weights": tuple(WEIGHTS.values())}
#: Ours → ranx's name and parameters.
METHODS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    *((({"method": f"comb_{name}"}), name, {}) for name in ("sum", "max", "min")),
    *((({"method": f"comb_{name}"}), name, {}) for name in ("med", "anz", "mnz")),
    ({"method": "comb_gmnz", "gamma": 0.3}, "gmnz", {"gamma": 0.3}),
    ({"method": "gmnz", "gamma": 1.0}, "gmnz", {"gamma": 1.0}),
    ({"method": "mixed", "weights": WEIGHTS}, "mixed", PARAMETERS),
    ({"method": "wmnz", "weights": WEIGHTS}, "wmnz", PARAMETERS),
    ({"method": "weighted_sum", "weights": WEIGHTS}, "wsum", PARAMETERS),
]
SCALES: dict[str, Any] = {name: NORMALIZERS[name] for name in ("min-max", "zmuv", "sum")}

Lists = Mapping[str, Mapping[str, float]]
#: Where the two differ on purpose: lists, ranx's method and parameters, ours, what ranx gives,
#: what we give, why.
DIFFERENCES: list[tuple[Lists, str, dict[str, Any], dict[str, Any], Any, Any, str]] = [
    (
        {"a": {"x": 3e9}, "b": {"y": 1.0}},
        "min",
        {},
        {"method": "comb_min"},
        {"x": 1e9, "y": 1.0},
        {"x": 3e9, "y": 1.0},
        "a list that lacks the document counts as 1e9 in ranx, which can be the least score",
    ),
    (
        {"a": {"x": -3e9}, "b": {"y": 1.0}},
        "max",
        {},
        {"method": "comb_max"},
        {"x": -1e9, "y": 1.0},
        {"x": -3e9, "y": 1.0},
        "a list that lacks the document counts as -1e9 in ranx, which can be the greatest score",
    ),
    (
        {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0, "y": 1.0}, "c": {"y": 5.0}},
        "mixed",
        {"weights": (1.0, 1.0, 0.0)},
        {"method": "mixed", "weights": {"c": 0}},
        {"x": 2 * 2**0.5, "y": 2 * 3**0.5},
        {"x": 2 * 2**0.5, "y": 2 * 2**0.5},
        "a list of weight 0 takes no part at all; in ranx it still counts into n",
    ),
    (
        {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 1.0, "y": 1.0}, "c": {"y": 5.0}},
        "wmnz",
        {"weights": (1.0, 1.0, 0.0)},
        {"method": "wmnz", "weights": {"c": 0}},
        {"x": 4.0, "y": 14.0},
        {"x": 4.0, "y": 4.0},
        "a list of weight 0 takes no part at all; in ranx its scores still count",
    ),
]


@pytest.fixture(scope="module")
def ranx() -> Ranx:
    return Ranx()


@pytest.fixture(scope="module")
def runs() -> dict[str, Ranked]:
    """Three runs that share some documents, best first, without ties; scores of either sign."""
    random = Random(8)
    return {
        name: {
            f"q{q}": {
                f"d{n}": x
                for n, x in zip(
                    random.sample(range(25), 10 + q),
                    sorted((random.uniform(-5, 40) for _ in range(10 + q)), reverse=True),
                    strict=True,
                )
            }
            for q in range(4)
        }
        for name in WEIGHTS
    }


def ours(lists: Mapping[str, Ranked], config: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    fusion = fusions.build(dict(config))
    view = aligned(lists)
    weights = fusion.source_weights(view.sources, view.roles)
    used = [name for name, w in zip(view.sources, weights, strict=True) if w > 0]
    view = view.restrict(used)
    return by_document(view, fusion.fuse(view))


@pytest.mark.parametrize(("config", "method", "params"), METHODS, ids=str)
def test_score_methods(
    ranx: Ranx,
    runs: dict[str, Ranked],
    config: dict[str, Any],
    method: str,
    params: dict[str, Any],
) -> None:
    theirs = ranx.fused(runs, norm=None, method=method, params=params)
    assert_close(ours(runs, {**config, "normalize": "none"}), theirs)


@pytest.mark.parametrize("norm", SCALES)
@pytest.mark.parametrize("method", ["sum", "med", "mnz"])
def test_score_methods_of_normalized_lists(
    ranx: Ranx, runs: dict[str, Ranked], method: str, norm: str
) -> None:
    theirs = ranx.fused(runs, norm=norm, method=method)
    assert_close(ours(runs, {"method": method, "normalize": SCALES[norm]}), theirs)


@pytest.mark.parametrize(
    ("lists", "method", "params", "config", "theirs", "ours_", "why"),
    DIFFERENCES,
    ids=lambda x: str(x)[:30],
)
def test_known_differences(
    ranx: Ranx,
    lists: Lists,
    method: str,
    params: dict[str, Any],
    config: dict[str, Any],
    theirs: dict[str, float],
    ours_: dict[str, float],
    why: str,
) -> None:
    assert why
    ranked = {name: {"q": found} for name, found in lists.items()}
    found = ranx.fused(ranked, norm=None, method=method, params=params)["q"]
    assert found == pytest.approx(theirs)
    assert ours(ranked, {**config, "normalize": "none"})["q"] == pytest.approx(ours_)


def test_ranx_takes_more_weights_than_there_are_lists(ranx: Ranx, runs: dict[str, Ranked]) -> None:
    two = {name: runs[name] for name in ("bm25", "dense")}
    ranx.fused(two, norm=None, method="wsum", params=PARAMETERS)  # three weights, no error
    with pytest.raises(ConfigError, match="'hyde' fits no source"):
        ours(two, {"method": "wsum", "weights": WEIGHTS})


def test_ranx_has_no_default_that_works(ranx: Ranx, runs: dict[str, Ranked]) -> None:
    with pytest.raises(TypeError, match="weights"):
        ranx.fused(runs)  # its default method is wsum
    assert ours(runs, {"method": "wsum"})["q0"]

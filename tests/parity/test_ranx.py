"""Fusion and normalization equal ranx's where ranx is right; where it is not, the reason stands.

ranx is compared as the Python that it is written in: compiling it for every test process takes
minutes, and so does its compiled Borda on long lists. The numbers of the compiled ranx are stored
beside this file; ``tests/parity/compiled_ranx.py`` renews them.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers

Ranked = Mapping[str, Mapping[str, float]]

#: What :func:`fuse_and_normalize` gives where ranx is compiled, and the version of ranx.
COMPILED = Path(__file__).with_name("compiled_ranx.json")

#: ranx's name → ours, with the options under which both mean the same.
NORMALIZERS: dict[str, dict[str, Any]] = {
    "min-max": {"method": "min_max", "constant": 0},
    "min-max-inverted": {"method": "min_max_inverted", "constant": 0},
    "max": {"method": "max"},
    "sum": {"method": "sum", "constant": 0},
    "zmuv": {"method": "z_score", "constant": 0},
    "rank": {"method": "rank"},
    "borda": {"method": "borda"},
}

#: Where the two differ on purpose: lists, ranx's way, ours, what ranx gives, what we give, why.
DIFFERENCES: list[tuple[dict[str, float], str, dict[str, Any], Any, Any, str]] = [
    (
        {"a": 3.0, "b": 3.0},
        "min-max",
        {"method": "min_max"},
        {"a": 0.0, "b": 0.0},
        {"a": 1.0, "b": 1.0},
        "a constant list becomes 1, as in pyserini and Elasticsearch: it was found, after all",
    ),
    (
        {"a": -1.0, "b": -2.0},
        "max",
        {"method": "max"},
        {"a": -1e9, "b": -2e9},
        None,
        "x / max means nothing where max is not positive: refused, not divided by 1e-9",
    ),
    (
        {"a": 3.0},
        "zmuv",
        {"method": "z_score"},
        {"a": 0.0},
        {"a": 1.0},
        "one document is a constant list",
    ),
]


class Ranx:
    """The little of ranx that is compared; ``NUMBA_DISABLE_JIT`` says whether it is compiled."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # numba and ir_datasets announce their own deprecations while they are imported
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            import ranx
            from ranx import normalization
        self.module = ranx
        self.normalization = normalization

    def run(self, name: str, ranked: Ranked) -> Any:  # noqa: ANN401 - ranx ships no types
        return self.module.Run({q: dict(docs) for q, docs in ranked.items()}, name=name)

    def normalized(self, ranked: Ranked, norm: str) -> dict[str, dict[str, float]]:
        function = self.normalization.norm_switch(norm)
        run = self.run("a", ranked)
        result = function([run])[0] if norm == "borda" else function(run)
        return {q: dict(docs) for q, docs in result.to_dict().items()}

    def fused(self, runs: Mapping[str, Ranked], **options: Any) -> dict[str, dict[str, float]]:  # noqa: ANN401 - as above
        made = [self.run(name, ranked) for name, ranked in runs.items()]
        return {q: dict(d) for q, d in self.module.fuse(made, **options).to_dict().items()}


@pytest.fixture(scope="module")
def ranx() -> Ranx:
    return Ranx()


@pytest.fixture(scope="module")
def runs() -> dict[str, Ranked]:
    return make_runs()


def make_runs() -> dict[str, Ranked]:
    """Two runs without ties, best first, each document's score its own."""
    random = Random(5)
    return {
        name: {
            f"q{q}": {
                f"d{n}": float(x)
                for n, x in zip(
                    random.sample(range(30), 15),
                    sorted((random.uniform(0.5, 40) for _ in range(15)), reverse=True),
                    strict=True,
                )
            }
            for q in range(5)
        }
        for name in ("bm25", "dense")
    }


def aligned(runs: Mapping[str, Ranked], read_options: ReadOptions | None = None) -> AlignedRuns:
    queries = next(iter(runs.values()))
    return align(
        Qrels.from_dict({q: {"d1": 1} for q in queries}),
        [Run.from_dict(name, ranked, read_options=read_options) for name, ranked in runs.items()],
    )


def by_document(runs: AlignedRuns, values: Any) -> dict[str, dict[str, float]]:  # noqa: ANN401 - an array
    out: dict[str, dict[str, float]] = {query: {} for query in runs.queries}
    for q, d, value in zip(runs.query_index, runs.documents, values, strict=True):
        if not np.isnan(value):
            out[runs.queries[q]][runs.vocabulary[d]] = float(value)
    return out


def assert_close(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    assert set(ours) == set(theirs)
    for query, documents in theirs.items():
        assert ours[query] == pytest.approx(documents, rel=1e-12, abs=1e-12)


def fuse_and_normalize(ranx: Ranx, runs: Mapping[str, Ranked]) -> dict[str, Any]:
    """A rank fusion and a normalizer of ranx, and whether they are compiled (which takes long)."""
    return {
        "compiled": hasattr(sys.modules["ranx.normalization.borda_norm"]._borda_norm, "signatures"),
        "rrf": ranx.fused(runs, norm=None, method="rrf", params={"k": 60}),
        "min-max": ranx.normalized(runs["bm25"], "min-max"),
    }


def test_compiled_ranx_gives_the_numbers_of_its_source(ranx: Ranx, runs: dict[str, Ranked]) -> None:
    stored = json.loads(COMPILED.read_text(encoding="utf-8"))
    assert stored.pop("ranx") == version("ranx"), "renew it: python -m tests.parity.compiled_ranx"
    compiled, source = stored, fuse_and_normalize(ranx, runs)
    assert (compiled.pop("compiled"), source.pop("compiled")) == (True, False)
    assert compiled.keys() == source.keys()
    for name, lists in source.items():
        assert_close(compiled[name], lists)


def test_rrf(ranx: Ranx, runs: dict[str, Ranked]) -> None:
    view = aligned(runs)
    for k in (1, 60):
        ours = by_document(view, fusions.build({"method": "rrf", "k": k}).fuse(view))
        assert_close(ours, ranx.fused(runs, norm=None, method="rrf", params={"k": k}))


def test_weighted_sum_of_min_max(ranx: Ranx, runs: dict[str, Ranked]) -> None:
    view = aligned(runs)
    weights = {"bm25": 0.3, "dense": 0.7}
    ours = fusions.build(
        {
            "method": "weighted_score",
            "weights": weights,
            "normalize": {"method": "min_max", "constant": 0},
            "missing": "zero",
        }
    ).fuse(view)
    params = {"weights": tuple(weights.values())}
    theirs = ranx.fused(runs, norm="min-max", method="wsum", params=params)
    assert_close(by_document(view, ours), theirs)


@pytest.mark.parametrize("norm", NORMALIZERS)
def test_normalizer(ranx: Ranx, runs: dict[str, Ranked], norm: str) -> None:
    view = aligned({"bm25": runs["bm25"]})
    ours = by_document(view, normalizers.build(NORMALIZERS[norm]).normalize_scores(view)[0])
    assert_close(ours, ranx.normalized(runs["bm25"], norm))


@pytest.mark.parametrize(
    ("ranked", "norm", "config", "theirs", "ours", "why"), DIFFERENCES, ids=lambda x: str(x)[:30]
)
def test_known_differences(
    ranx: Ranx,
    ranked: dict[str, float],
    norm: str,
    config: dict[str, Any],
    theirs: dict[str, float],
    ours: dict[str, float] | None,
    why: str,
) -> None:
    assert why
    assert ranx.normalized({"q": ranked}, norm)["q"] == pytest.approx(theirs)
    view = aligned({"a": {"q": ranked}})
    scale = normalizers.build(config)
    if ours is None:
        with pytest.raises(Exception, match="greatest score"):
            scale.normalize_scores(view)
        return
    assert by_document(view, scale.normalize_scores(view)[0])["q"] == ours


def test_zmuv_makes_a_missing_document_average(ranx: Ranx) -> None:
    # ranx adds 0 for it, and 0 is the mean of a standardised list: above what was retrieved.
    lists: dict[str, Ranked] = {
        "a": {"q": {"d1": 9.0, "d2": 2.0, "d3": 1.0}},
        "b": {"q": {"d1": 9.0, "d4": 1.0}},
    }
    theirs = ranx.fused(lists, norm="zmuv", method="wsum", params={"weights": (1.0, 1.0)})["q"]
    assert theirs["d4"] < theirs["d3"]
    view = aligned(lists)
    zero, least = (
        by_document(
            view,
            fusions.build(
                {"method": "weighted_score", "normalize": "z_score", "missing": missing}
            ).fuse(view),
        )["q"]
        for missing in ("zero", "min")
    )
    assert {d: 2 * x for d, x in zero.items()} == pytest.approx(theirs)
    assert least["d3"] < zero["d3"]


def test_ties_and_unsorted_runs_go_by_position_in_ranx(ranx: Ranx) -> None:
    # ranx sorts by score, and equal scores stay as they were handed in; ours go by document id.
    tied: dict[str, Ranked] = {"a": {"q": {"d1": 1.0, "d2": 1.0}}}
    theirs = ranx.fused(tied | {"b": tied["a"]}, norm=None, method="rrf")["q"]
    assert theirs["d1"] > theirs["d2"]
    view = aligned(tied)
    ours = by_document(view, fusions.build("rrf").fuse(view))["q"]
    assert ours["d2"] > ours["d1"]
    in_file_order = aligned(tied, ReadOptions(source_ties="file"))
    filed = by_document(in_file_order, fusions.build("rrf").fuse(in_file_order))["q"]
    assert filed["d1"] > filed["d2"]


def test_ranx_takes_a_missing_query_for_an_error(ranx: Ranx) -> None:
    lists: dict[str, Ranked] = {"a": {"q": {"d": 1.0}, "r": {"d": 1.0}}, "b": {"q": {"d": 1.0}}}
    with pytest.raises(AssertionError):
        ranx.fused(lists, norm=None, method="rrf")
    view = aligned(lists)
    assert by_document(view, fusions.build("rrf").fuse(view))["r"] == {"d": 1 / 61}

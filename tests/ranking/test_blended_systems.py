"""Blends in the engine: the values of the plain path to the last bit, or a query left to it."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fusion_bench import measures as measure
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, ConfigError, UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.load_records import load_run
from fusion_bench.measures import parse_measure
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.ranking.batch_engine import BatchResult, SystemSpec, Unsupported, evaluate_batch
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.ranking.term_sums import BatchLimits
from tests.contract.cases import DATASETS, aligned, blend_examples
from tests.examples import examples
from tests.parity.collections import COMPLETE, qrels_of, runs_of
from tests.parity.data import parity_data
from tests.ranking.test_fused_systems import (
    MEASURES,
    batch_limits,
    build_trial,
    configs,
    judged,
    pair_of_lists,
    views,
)

EXAMPLES = settings(max_examples=examples(20))
LISTS = ("full", "some")
#: What is refused although ranking may raise no error: the engine looks at more queries.
CAREFUL = ("beyond the range of the engine", "or not known", "without a rerank score")


@st.composite
def reranked(draw: st.DrawFn) -> AlignedRuns:
    """A view with two rerank lists: one of every candidate, one with gaps; often tied."""
    view = draw(views())
    size = len(view.documents)
    score = draw(
        st.sampled_from([st.integers(0, 3).map(lambda n: n / 4), st.floats(0, 1), st.just(0.5)])
    )
    full = np.array(draw(st.lists(score, min_size=size, max_size=size)), dtype=np.float64)
    gaps = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
    spaces: dict[str, ScoreSpace] = {
        name: draw(st.sampled_from(get_args(ScoreSpace))) for name in LISTS
    }
    rerank = np.array([full, np.where(gaps, np.nan, full)]).reshape(2, size)
    for row, name in zip(rerank, LISTS, strict=True):
        if spaces[name] in {"unbounded", "logit", "order"}:
            row[:] = (row - 0.5) * draw(st.sampled_from([1.0, 8.0, 1e12]))
        elif spaces[name] == "log_prob":
            row[:] = -row
    return replace(
        view,
        rerankers=LISTS,
        rerank=rerank,
        rerank_ranks=np.array([ranks_of(view, row) for row in rerank]).reshape(2, size),
        spaces=spaces,
    )


def ranks_of(view: AlignedRuns, scores: FloatArray) -> Any:  # noqa: ANN401 - an IntArray
    ranks = np.zeros(len(scores), dtype=np.int64)
    for start, stop in zip(view.offsets[:-1], view.offsets[1:], strict=True):
        scored = [n for n in range(start, stop) if not np.isnan(scores[n])]
        for place, n in enumerate(sorted(scored, key=lambda n: -scores[n]), 1):
            ranks[n] = place
    return ranks


@st.composite
def blend_configs(draw: st.DrawFn) -> dict[str, Any]:
    method = draw(st.sampled_from(["replace", "linear", "position_aware"]))
    config: dict[str, Any] = {
        "method": method,
        "reranker": draw(st.sampled_from(LISTS)),
        "depth": draw(st.sampled_from([1, 2, 3, 5, 50])),
        "missing": draw(st.sampled_from(["error", "zero", "below"])),
        "tail": draw(st.sampled_from(["keep", "drop"])),
        "min_score": draw(st.sampled_from([None, None, 0.25, 0.5])),
        "always_rerank": draw(st.booleans()),
        "skip_limit": draw(st.integers(0, 6)),
    }
    share = st.sampled_from([0.0, 1.0, 0.5, 0.7]) | st.floats(0, 1)
    if method != "replace":
        terms = ["fused", "fused_max_possible", "fused_min_max", "reciprocal_rank"]
        config["retrieval"] = draw(st.sampled_from(terms))
    if method == "linear":
        config["beta"] = draw(share)
    if method == "position_aware":
        config["tiers"] = draw(st.dictionaries(st.integers(1, 4), share, max_size=2))
        config["rest"] = draw(share)
    return config


@st.composite
def systems(draw: st.DrawFn, runs: AlignedRuns) -> System:
    method = draw(st.sampled_from(["rrf", "rrf_v2", "weighted_score", "any_scores", "registered"]))
    blend = draw(st.just({"method": "none"}) | blend_configs() | blend_configs())
    system = System.model_validate(
        {
            "name": "s",
            "runs": runs.sources,
            "fusion": build_trial(draw(configs(runs.sources, method)), method),
            "blend": blend,
            "min_relevance": draw(st.sampled_from([None, None, 0.0, 0.02, 0.5])),
            "top_k": draw(st.sampled_from([None, None, 1, 3])),
        }
    )
    assume(fits_sources(system, runs))  # others are refused before anything is computed
    return system


def fits_sources(system: System, runs: AlignedRuns) -> bool:
    try:
        system.fusion.check_sources(runs.sources, runs.roles)
    except ConfigError:
        return False
    return True


def plain(system: System, runs: AlignedRuns) -> FloatArray | None:
    """The slow way; None = it raises."""
    try:
        ranking = rank_candidates(system, runs)
    except (AlignmentError, ConfigError):
        return None
    return measure.compute_measures(MEASURES, ranking.runs, ranking.positions)


def asked(system: System) -> SystemSpec:
    blend = None if isinstance(system.blend, NoBlend) else system.blend
    return SystemSpec(system.fusion, blend, system.min_relevance, system.top_k)


def assert_same(
    trials: list[System],
    runs: AlignedRuns,
    limits: BatchLimits | None = None,
) -> list[BatchResult | Unsupported]:
    """One at a time and all at once; returns the latter."""
    found = evaluate_batch([asked(system) for system in trials], runs, MEASURES, limits)
    for system, together in zip(trials, found, strict=True):
        expected = plain(system, runs)
        (alone,) = evaluate_batch([asked(system)], runs, MEASURES, limits)
        for answer in (together, alone):
            if isinstance(answer, Unsupported):
                assert expected is None or answer.reason.endswith(CAREFUL)
                continue
            assert expected is not None
            closed = ~answer.unresolved
            assert answer.values[:, closed].tobytes() == expected[:, closed].tobytes()
    return list(found)


def test_any_blend_on_any_lists() -> None:
    @EXAMPLES
    @given(st.data())
    def same(data: st.DataObject) -> None:
        runs = data.draw(reranked())
        trials = data.draw(st.lists(systems(runs), min_size=1, max_size=4))
        assert_same(trials, runs)

    same()


def test_any_limits_of_the_engine() -> None:
    @EXAMPLES
    @given(st.data())
    def same(data: st.DataObject) -> None:
        limits = data.draw(batch_limits())
        runs = data.draw(reranked())
        trials = data.draw(st.lists(systems(runs), min_size=1, max_size=4))
        assert_same(trials, runs, limits)

    same()


def test_systems_that_blend_come_out_as_ranked() -> None:
    """Through ``evaluate``: whatever is left open is ranked there, errors are the same."""

    @settings(max_examples=examples(16))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        runs = data.draw(reranked())
        system = data.draw(systems(runs))
        expected = plain(system, runs)
        if expected is None:
            with pytest.raises((AlignmentError, ConfigError), match=r"^system 's': "):
                evaluate_systems([system], runs, MEASURES)
            return
        (found,) = evaluate_systems([system], runs, MEASURES)
        assert found.values.tobytes() == expected.tobytes()

    same()


# Named cases ------------------------------------------------------------------------------------


def tied(size: int) -> AlignedRuns:
    """One list whose documents all tie, and a reranker that knows the last of them."""
    names = [f"d{n:03}" for n in range(size)]
    return align(
        Qrels.from_dict({"q": {"d000": 1}, "rest": {"x": 1}}),
        [Run.from_dict("a", {"q": dict.fromkeys(names, 1.0), "rest": {"x": 1.0, "y": 0.5}})],
        rerankers=[
            Run.from_dict("r", {"q": dict.fromkeys(names, 0.5), "rest": {"x": 0.1, "y": 1}})
        ],
        spaces={"r": "unit"},
    )


def linear(**options: object) -> dict[str, object]:
    return {"method": "linear", "reranker": "r", "beta": 0.5, **options}


@pytest.mark.parametrize("config", blend_examples(), ids=str)
def test_every_blend_that_says_what_it_is_made_of_says_it_right(config: dict[str, Any]) -> None:
    for dataset in DATASETS:
        runs = judged(aligned(dataset))
        for fusion in ("rrf", "weighted_score"):
            system = System.model_validate(
                {"name": "s", "runs": runs.sources, "fusion": fusion, "blend": config}
            )
            assert_same([system], runs)


def test_ties_that_reach_beyond_what_is_kept_are_left_and_ranked() -> None:
    runs = tied(60)
    flat = {"method": "weighted_score", "normalize": {"method": "min_max", "constant": 0.5}}
    system = System.model_validate(
        {"name": "s", "runs": ["a"], "fusion": flat, "blend": linear(depth=5)}
    )
    (found,) = evaluate_batch([asked(system)], runs, MEASURES)
    assert isinstance(found, BatchResult)
    assert found.unresolved.tolist() == [True, False]
    (scores,) = evaluate_systems([system], runs, MEASURES)
    expected = plain(system, runs)
    assert expected is not None
    assert scores.values.tobytes() == expected.tobytes()
    assert scores.evaluation_path.startswith("counted, ")
    assert scores.evaluation_path.endswith(": ranked")


@pytest.mark.parametrize(
    ("options", "spaces", "reason"),
    [
        ({"blend": linear()}, {}, "no rerank list 'r' with a score space"),
        ({"blend": linear(reranker="x")}, {"r": "unit"}, "no rerank list 'x' with a score space"),
        (
            {"fusion": {"method": "rrf", "weights": {"a": 1e300}}, "blend": linear()},
            {"r": "unit"},
            "scores beyond the range of the engine",
        ),
        (
            {"fusion": "weighted_score", "blend": linear(retrieval="fused_max_possible")},
            {"r": "unit"},
            "a greatest possible score that is not above 0, or not known",
        ),
        ({"blend": linear(depth=2)}, {"r": "unit"}, "documents without a rerank score"),
    ],
)
def test_what_is_refused(
    options: dict[str, Any], spaces: dict[str, ScoreSpace], reason: str
) -> None:
    runs = align(
        Qrels.from_dict({"q": {"x": 1}, "empty": {"x": 0}}),
        [Run.from_dict("a", {"q": {"x": -1.0, "y": -2.0}, "empty": {"x": -1.0, "z": -2.0}})],
        rerankers=[Run.from_dict("r", {"q": {"x": 0.1, "y": 0.2}})],
        spaces=spaces,
    )
    system = System.model_validate({"name": "s", "runs": ["a"], **options})
    (found,) = evaluate_batch([asked(system)], runs, MEASURES)
    assert found == Unsupported(reason)


def test_a_score_at_the_limit_of_relevance_is_ranked_where_ties_could_hide() -> None:
    view = pair_of_lists()
    limit = 1 / 63
    system = System.model_validate(
        {"name": "s", "runs": ["a", "b"], "fusion": "rrf", "min_relevance": limit}
    )
    (found,) = evaluate_batch([asked(system)], view, MEASURES)
    assert isinstance(found, BatchResult)
    assert found.unresolved.tolist() == [True, False]  # a02 is third in its list
    expected = plain(system, view)
    assert expected is not None
    (scores,) = evaluate_systems([system], view, MEASURES)
    assert scores.values.tobytes() == expected.tobytes()


def test_the_path_says_why_a_system_was_ranked() -> None:
    view = pair_of_lists()
    every = [
        System.model_validate({"name": "s", "runs": ["a", "b"], **options})
        for options in ({}, {"min_relevance": 0.01}, {"fusion": {"method": "rrf", "k": 1}})
    ]
    measures = [parse_measure("RR"), parse_measure("Judged@10")]
    assert [s.evaluation_path for s in evaluate_systems(every, view, measures[:1])] == [
        "counted"
    ] * 3
    (scores, *_) = evaluate_systems(every, view, measures)
    assert scores.evaluation_path.startswith("ranked: Judged@10 ")


def test_an_unknown_reranker_is_named() -> None:
    system = System.model_validate(
        {"name": "s", "runs": ["a"], "blend": {"method": "replace", "reranker": "x"}}
    )
    with pytest.raises((UnknownNameError, ConfigError), match="unknown reranker 'x'"):
        evaluate_systems([system], tied(3), MEASURES)


# Real collections -------------------------------------------------------------------------------

#: Collection → its rerank list and what its scores mean.
RERANKED: dict[str, tuple[str, ScoreSpace]] = {
    "jqara": ("bge-reranker-v2-m3", "unit"),
    "codec": ("monot5-on-ance", "log_prob"),
    "trec-dl-2019": ("rankvicuna-on-splade", "order"),
}


@cache
def real(collection: str) -> AlignedRuns:
    name, space = RERANKED[collection]
    folder = parity_data(collection) / "rerank"
    # CODEC's lists name a few documents twice.
    found = load_run(
        folder / f"{name}.trec.gz", name="r", read_options=ReadOptions(on_duplicate="best_rank")
    )
    lists = (qrels_of(collection), runs_of(collection))
    return align(*lists, rerankers=[found], complete=collection in COMPLETE, spaces={"r": space})


def some_systems(runs: AlignedRuns) -> list[System]:
    """Every blend, retrieval term and way with missing scores, over three fusions in turn."""
    even: dict[str, Any] = {"reranker": "r", "missing": "below"}
    terms = ("fused", "fused_max_possible", "fused_min_max", "reciprocal_rank")
    every: list[dict[str, Any]] = [
        {"method": "replace"},
        {"method": "replace", "min_score": 0.4, "depth": 100},
        *({"method": "linear", "beta": 0.7, "retrieval": term} for term in terms),
        *({"method": "position_aware", "retrieval": term, "depth": 10} for term in terms),
        {"method": "linear", "beta": 0.4, "missing": "zero", "tail": "drop"},
        {"method": "position_aware", "always_rerank": False, "skip_limit": 100},
    ]
    fused: list[dict[str, Any]] = [
        {"method": "rrf"},
        {"method": "rrf", "k": 7.5, "normalize": "three_lists", "weights": {runs.sources[0]: 3.0}},
        {"method": "weighted_score", "normalize": "min_max"},
    ]
    return [
        System.model_validate(
            {
                "name": f"s{i}",
                "runs": runs.sources,
                "fusion": fused[i % 3],
                "blend": even | blend,
                "min_relevance": [None, None, None, 0.3][i % 4],
                "top_k": [None, 20][i % 2],
            }
        )
        for i, blend in enumerate(every)
    ]


@pytest.mark.parity
@pytest.mark.parametrize("collection", RERANKED)
def test_real_rerank_lists(collection: str) -> None:
    runs = real(collection)
    for system, found in zip(
        some_systems(runs), assert_same(some_systems(runs), runs), strict=True
    ):
        assert isinstance(found, BatchResult), (system, found)
        assert found.unresolved.mean() < 0.1


@pytest.mark.slow
def test_a_batch_of_blends_on_the_attack_collection_by_type() -> None:
    dataset = load_dataset(Path(__file__).parents[2] / "datasets/attack/dataset.yaml")
    random = np.random.default_rng(7)
    runs = align(dataset.qrels, tuple(dataset.runs.values()), queries=dataset.queries)
    scores = np.round(random.random(len(runs.documents)), 2)
    runs = replace(
        runs,
        rerankers=("r",),
        rerank=scores[None],
        rerank_ranks=ranks_of(runs, scores)[None],
        types=tuple(["local", "global", None][i % 3] for i in range(len(runs.queries))),
        spaces={"r": "unit"},
    )
    roles = {role: runs.sources[i] for i, role in enumerate(("keyword", "semantic"))}
    weights = {"local": {roles["keyword"]: 0.4}, "hybrid": {roles["keyword"]: 0.2}}
    for by_role in weights.values():
        by_role[roles["semantic"]] = 1 - by_role[roles["keyword"]]
    shared = {"name": "s", "runs": list(roles.values()), "weights_by_type": weights}
    blends_ = [linear(beta=b, retrieval="fused_min_max", depth=10) for b in (0.2, 0.6)]
    every = [System.model_validate({**shared, "blend": blend}) for blend in blends_]
    for system, found in zip(every, evaluate_systems(every, runs, MEASURES), strict=True):
        expected = np.zeros_like(found.values)
        for index, ranking in rank_queries(system, runs):
            expected[:, index] = measure.compute_measures(MEASURES, ranking.runs, ranking.positions)
        assert found.values.tobytes() == expected.tobytes()
        assert found.evaluation_path == "counted"

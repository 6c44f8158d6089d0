"""The engine gives the values of the plain path, to the last bit, or says that it cannot."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench import measures as measure
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.grouped_rows import to_offsets
from fusion_bench.data.ordering import FloatArray, positions
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.measures import parse_measure
from fusion_bench.methods.fuse import CandidateScores, Fusion, RankSum, fusions
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.ranking.batch_engine import SystemSpec, Unsupported, evaluate_batch
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.ranking.term_sums import BatchLimits, RankScorer
from tests.contract.cases import DATASETS, aligned, fusion_examples, ready_fusion
from tests.evaluation.test_scores import Plain
from tests.examples import examples
from tests.parity.collections import COLLECTIONS
from tests.parity.collections import aligned as parity_aligned

NAMES = (
    *("nDCG@1", "nDCG@3", "nDCG", "nDCG(dcg='exp-log2')@5", "RR@2", "RR", "RR(rel=2)", "R@1"),
    *("R(rel=2)@4", "AP@2", "AP", "P@2", "P(rel=3)@5", "Success@1", "Success(rel=2)@3"),
)
MEASURES = [parse_measure(name) for name in NAMES]
#: Of these the engine needs the first five places only.
SHALLOW = [measure for measure in MEASURES if measure.cutoff]
SOURCES = ("bm25", "dense", "hyde")
ROLES = {"bm25": {"keyword"}, "dense": {"question", "semantic"}, "hyde": {"hyde"}}
DOCUMENTS = [f"d{i:02}" for i in range(24)]
BEYOND = ["scores beyond the range of the engine"]
EXAMPLES = settings(max_examples=examples(25))
DEFAULT = BatchLimits()


def plain(
    fusion: Fusion, view: AlignedRuns, measures: list[measure.Measure], top_k: int | None = None
) -> FloatArray:
    """The slow way, written out."""
    placed = positions(fusion.fuse(view), view.offsets)
    if top_k is not None:
        placed = np.where(placed > top_k, 0, placed)
    return measure.compute_measures(measures, view, placed)


def counted(
    fusions: Sequence[Fusion],
    view: AlignedRuns,
    measures: list[measure.Measure],
    top_k: Sequence[int | None] = (),
    limits: BatchLimits = DEFAULT,
) -> list[FloatArray | Unsupported]:
    """What the engine says of fusions without a blend: it never leaves a query open."""
    asked = [SystemSpec(f, top_k=cut) for f, cut in zip_longest(fusions, top_k)]
    found: list[FloatArray | Unsupported] = []
    for answer in evaluate_batch(asked, view, measures, limits=limits):
        assert isinstance(answer, Unsupported) or not answer.unresolved.any()
        found.append(answer if isinstance(answer, Unsupported) else answer.values)
    return found


def assert_same(
    trials: list[Fusion],
    view: AlignedRuns,
    *,
    top_k: list[int | None] | None = None,
    limits: BatchLimits = DEFAULT,
) -> None:
    """One at a time and all at once; all places, or the first ones; in C, if it can, or numpy."""
    cuts = top_k or [None] * len(trials)
    every = [plain(f, view, MEASURES, cut) for f, cut in zip(trials, cuts, strict=True)]
    shallow = [values[[bool(m.cutoff) for m in MEASURES]] for values in every]
    assert_same_values(trials, view, MEASURES, cuts, limits, every)
    assert_same_values(trials, view, SHALLOW, cuts, limits, shallow)


def assert_same_values(
    trials: list[Fusion],
    view: AlignedRuns,
    measures: list[measure.Measure],
    cuts: list[int | None],
    limits: BatchLimits,
    every: list[FloatArray],
) -> None:
    together = counted(trials, view, measures, cuts, limits)
    for t, (fusion, cut, found) in enumerate(zip(trials, cuts, together, strict=True)):
        expected = every[t]
        with patch.dict(os.environ, {"FUSION_BENCH_NATIVE": str(t % 2)}):
            (alone,) = counted([fusion], view, measures, [cut], limits)
        for values in (found, alone):
            if isinstance(values, Unsupported):
                assert values.reason in {
                    "weighted_score": ["weights beyond the range of the engine"],
                }.get(fusion.method, BEYOND if is_candidate_scored(fusion, view) else [])
            else:
                assert values.tobytes() == expected.tobytes()


def is_candidate_scored(fusion: Fusion, view: AlignedRuns) -> bool:
    return isinstance(fusion.engine_form(view), CandidateScores)


@st.composite
def views(draw: st.DrawFn) -> AlignedRuns:
    """Up to three lists, short or empty, that share documents; several grades."""
    used = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3, unique=True))
    used = sorted({*used, "dense"}, key=draw(st.permutations(SOURCES)).index)
    pool = DOCUMENTS[: draw(st.integers(1, len(DOCUMENTS)))]
    queries = [f"q{i}" for i in range(draw(st.integers(1, 4)))]
    grade = st.integers(-1, 3)
    judged = {
        query: draw(st.dictionaries(st.sampled_from(pool), grade, min_size=1)) for query in queries
    }
    score = st.integers(-2, 3).map(float) | st.floats(-5, 5)
    lists = {
        name: {
            query: draw(st.dictionaries(st.sampled_from(pool), score, max_size=12))
            for query in queries
        }
        for name in used
    }
    runs = [
        Run.from_dict(
            name,
            {
                q: found
                for q, found in (lists[name] | {"shared by all": {"d00": 1.0}}).items()
                if found
            },
            roles=frozenset(ROLES[name]),
        )
        for name in used
    ]
    qrels = Qrels.from_dict(judged | {"shared by all": {"d00": 1}})
    return align(qrels, runs, ties=draw(st.sampled_from(["trec", "first_seen"])))


WEIGHTS = st.one_of(
    st.just(1.0),
    st.integers(1, 3).map(float),
    st.floats(1e-3, 10),
    st.sampled_from([1e-14, 1e-11, 1e-9, 1e9, 1e14, 1e-200, 1e200]),
)
BONUSES = st.dictionaries(
    st.integers(1, 6), st.sampled_from([0.0, 0.01, 0.02, 0.05, 1.0, 1e9]), max_size=3
)
KS = st.sampled_from([0, 1, 2, 60, 1000]) | st.floats(0, 1000)


class AnyScores(WeightedScore):
    """``weighted_score``: as a method of which the batch engine knows the scores alone."""

    def engine_form(self, runs: AlignedRuns) -> Any:  # noqa: ANN401 - not a WeightedMean
        return Fusion.engine_form(self, runs)


def build_trial(config: dict[str, Any], method: str) -> Fusion:
    return AnyScores.model_validate(config) if method == "any_scores" else ready_fusion(config)


#: All but those that refuse lists whose greatest score is not positive, or scores below 0.
REGISTERED = [
    config
    for config in fusion_examples()
    if not any(name in repr(config.get("normalize")) for name in ("'max'", "'lo'"))
]


@st.composite
def registered_configs(draw: st.DrawFn, sources: tuple[str, ...]) -> dict[str, Any]:
    """Any configuration of the contract tests, with other weights."""
    config = dict(draw(st.sampled_from(REGISTERED)))
    fields = fusions.find_plugin(config["method"]).model_fields
    if "weights" in fields:
        config["weights"] = {s: draw(st.sampled_from([0.5, 1.0, 2.5])) for s in sources}
    if "lo" in fields:
        config["lo"] = dict.fromkeys(sources, -6.0)
    normalize = config.get("normalize")
    if isinstance(normalize, dict) and normalize["method"] == "by_source":
        scales = normalize["sources"].values()
        config["normalize"] = {**normalize, "sources": dict(zip(sources, scales, strict=False))}
    return config


@st.composite
def configs(draw: st.DrawFn, sources: tuple[str, ...], method: str) -> dict[str, Any]:
    if method == "registered":
        return draw(registered_configs(sources))
    method = method.replace("any_scores", "weighted_score")
    config: dict[str, Any] = {"method": method, "weights": {s: draw(WEIGHTS) for s in sources}}
    if method == "weighted_score":
        config["normalize"] = draw(st.sampled_from(["none", "min_max", "z_score", "rank"]))
        config["missing"] = draw(st.sampled_from(["skip", "zero", "min"]))
        return config
    config["k"] = draw(KS)
    config["normalize"] = draw(st.sampled_from(["none", "max_possible", "three_lists"]))
    if method == "rrf_v2":
        config["bonus"] = draw(BONUSES)
        config["bonus_scope"] = draw(st.sampled_from(["best_rank", "per_source", "question"]))
        config["bonus_unit"] = draw(st.sampled_from(["absolute", "relative"]))
    return config


@pytest.mark.parametrize("method", ["rrf", "rrf_v2", "weighted_score", "any_scores", "registered"])
def test_any_weights_on_any_lists(method: str) -> None:
    @settings(max_examples=examples(10 if method == "registered" else 25))
    @given(st.data())
    def same(data: st.DataObject) -> None:
        view = data.draw(views())
        every = st.lists(configs(view.sources, method), min_size=1, max_size=10)
        trials = [build_trial(config, method) for config in data.draw(every)]
        cut = st.lists(st.none() | st.integers(1, 9), min_size=len(trials), max_size=len(trials))
        assert_same(trials, view, top_k=data.draw(cut))

    same()


@st.composite
def batch_limits(draw: st.DrawFn) -> BatchLimits:
    """Sorted queries, narrow blocks, wide keys, few places to spare, few documents at once."""
    small: dict[str, tuple[int, ...]] = {
        "counted_relevant": (0, 1, 2),
        "layout_pairs": (1, 7),
        "counted_pairs": (1, 5),
        "pool_candidates": (1, 30),
        "pool_margin": (0, 1),
        "partition_factor": (1,),
        "bits_apart": (1 << 50,),
        "native_tables": (1,),
        "joined_entries": (0,),
        "block_candidates": (1, 40),
        "narrow_width": (1, 4),
        "spare_places": (1, 2),
        "compared_relevant": (0,),
        "fusions": (1,),
        "window_documents": (1, 8),
        "compared_pairs": (1, 8),
    }
    return BatchLimits(
        **{
            name: draw(st.sampled_from((*values, getattr(DEFAULT, name))))
            for name, values in small.items()
        }
    )


@pytest.mark.parametrize("method", ["rrf", "rrf_v2", "weighted_score", "any_scores"])
def test_any_limits_of_the_engine(method: str) -> None:
    @EXAMPLES
    @given(st.data())
    def same(data: st.DataObject) -> None:
        limits = data.draw(batch_limits())
        view = data.draw(views())
        every = st.lists(configs(view.sources, method), min_size=1, max_size=3)
        trials = [build_trial(config, method) for config in data.draw(every)]
        assert_same(trials, view, limits=limits)

    same()


# Named cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", fusion_examples(), ids=str)
def test_every_fusion_is_counted_to_the_values_of_the_plain_path(config: dict[str, Any]) -> None:
    fusion = ready_fusion(config)
    for dataset in DATASETS:
        view = judged(aligned(dataset))
        (found,) = counted([fusion], view, MEASURES)
        assert not isinstance(found, Unsupported)
        assert found.tobytes() == plain(fusion, view, MEASURES).tobytes()


def judged(view: AlignedRuns) -> AlignedRuns:
    """The same lists with other judgements, of several grades."""
    grades = np.arange(len(view.documents)) % 4
    query, order = view.query_index, np.lexsort((-grades, view.query_index))
    kept = order[grades[order] > 0]
    counts = np.bincount(query[kept], minlength=len(view.queries))
    return replace(
        view,
        grades=grades,
        judged=np.ones(len(grades), dtype=bool),
        ideal_offsets=to_offsets(counts),
        ideal_grades=grades[kept],
    )


def pair_of_lists(depth: int = 5) -> AlignedRuns:
    first, second = ({f"{name}{i:02}": -float(i) for i in range(depth)} for name in "ab")
    runs = [
        Run.from_dict("a", {"q": first}, roles=frozenset({"question"})),
        Run.from_dict("b", {"q": second}, roles=frozenset({"keyword"})),
    ]
    return align(
        Qrels.from_dict({"q": {"a02": 1, "b03": 2, "unseen": 1}, "without": {"x": 0}}), runs
    )


def test_ties_go_by_the_rule() -> None:
    view = pair_of_lists()
    for weights in ({}, {"a": 1e-13}, {"b": 1e-13}):
        assert_same([fusions.build({"method": "rrf", "weights": weights})], view)
    (found,) = counted([fusions.build("rrf")], view, [parse_measure("RR")])
    assert not isinstance(found, Unsupported)
    assert found.tolist() == [[1 / 6, 0.0]]  # b00, a00, b01, a01, b02, a02


class Clamped(Plain):
    """``plain``: shown otherwise than it orders."""

    def display_scores(self, scores: FloatArray) -> FloatArray:
        return np.minimum(scores, -1.0)


class Endless(Plain):
    """``plain``: a score that is no number."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        return np.where(np.arange(len(runs.documents)) == 1, np.nan, 1.0)


@pytest.mark.parametrize(
    ("fusion", "names", "reason"),
    [
        ("rrf", ["nDCG@10", "Judged@10"], "Judged@10 looks"),
        ("rrf", ["RR(judged_only=True)"], "RR(judged_only"),
        ("rrf", ["Bpref"], "Bpref looks"),
        (Clamped(), ["nDCG@10"], "plain"),
        (Endless(), ["nDCG@10"], "scores beyond"),
        ({"method": "rrf", "weights": {"a": 1e300}}, ["RR"], "scores beyond"),
        ({"method": "rrf", "weights": {"a": 1e-300, "b": 0}}, ["RR"], "scores beyond"),
        (
            {"method": "weighted_score", "weights": {"a": 1e-200}},
            ["RR"],
            "weights beyond",
        ),
    ],
)
def test_what_is_refused(fusion: Any, names: list[str], reason: str) -> None:  # noqa: ANN401
    given = fusion if isinstance(fusion, Fusion) else fusions.build(fusion)
    view = pair_of_lists()
    weights = given.source_weights(view.sources, view.roles)
    view = view.restrict([s for s, w in zip(view.sources, weights, strict=True) if w > 0])
    (found,) = counted([given], view, [parse_measure(name) for name in names])
    assert isinstance(found, Unsupported)
    assert found.reason.startswith(reason)


def test_scores_and_ranks_beyond_the_range_are_refused() -> None:
    runs = [Run.from_dict("a", {"q": {"x": 1e200, "y": 0.0}})]
    view = align(Qrels.from_dict({"q": {"x": 1}}), runs)
    (found,) = counted([fusions.build("weighted_score")], view, MEASURES)
    assert found == Unsupported("scores beyond the range of the engine")
    few = BatchLimits(max_rank=4)
    (found,) = counted([fusions.build("rrf")], pair_of_lists(), MEASURES, limits=few)
    assert found == Unsupported("a rank beyond 4")


def test_a_view_without_candidates_is_refused() -> None:
    view = pair_of_lists().subset(np.array([False, True]))
    (found,) = counted([fusions.build("rrf")], view, MEASURES)
    assert isinstance(found, Unsupported)
    (found,) = counted([fusions.build("weighted_score")], view, MEASURES)
    assert not isinstance(found, Unsupported)
    assert not found.any()


def test_many_sources() -> None:
    lists = {f"s{i}": {f"d{(i * j) % 7}": float(j) for j in range(i % 4 + 1)} for i in range(11)}
    view = align(
        Qrels.from_dict({"q": {"d1": 1, "d3": 2}}),
        [Run.from_dict(name, {"q": found}) for name, found in lists.items()],
    )
    weights = {"s1": 2.0, "s4": 0.3}
    for config in ({"method": "rrf"}, {"method": "weighted_score", "normalize": "min_max"}):
        assert_same([fusions.build(config), fusions.build(config | {"weights": weights})], view)


def test_only_fusions_that_reward_every_better_rank_are_pruned() -> None:
    view = pair_of_lists()

    def pruned(config: dict[str, Any]) -> bool:
        form = fusions.build(config).engine_form(view)
        assert isinstance(form, RankSum)
        (_, _, answer) = RankScorer.group_key(form)
        return bool(answer)

    v2 = {"method": "rrf_v2"}
    assert pruned({"method": "rrf"})
    assert pruned(v2)
    assert pruned(v2 | {"bonus_scope": "per_source"})
    assert not pruned(v2 | {"bonus": {1: 0.02, 3: 0.05}})
    assert not pruned(v2 | {"bonus": {1: 0.02, 3: 0.05}, "bonus_scope": "per_source"})
    assert not pruned(v2 | {"weights": {"b": 1e-10}})  # smaller than the last digit of a key


def deep_lists(seed: int = 3) -> AlignedRuns:
    """Queries of many relevant documents, and lists that agree in part."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(5, 900))
    qrels, lists = {}, [dict[str, dict[str, float]]() for _ in range(3)]
    for q, scores in enumerate(hidden):
        best = np.argsort(-scores)[: 30 + 40 * q]
        qrels[f"q{q}"] = {f"d{d:03}": int(random.integers(1, 4)) for d in best}
        for found in lists:
            noisy = scores + random.normal(size=len(scores))
            order = np.argsort(-noisy)[: 350 + 10 * q]
            found[f"q{q}"] = {f"d{d:03}": -float(i) for i, d in enumerate(order)}
    runs = [Run.from_dict(name, mine) for name, mine in zip("abc", lists, strict=True)]
    return align(Qrels.from_dict(qrels), runs)


@pytest.mark.parametrize(
    "config",
    [
        {"method": "rrf"},
        {"method": "rrf", "k": 0},
        {"method": "rrf", "weights": {"a": 2.0}},
        {"method": "weighted_score"},
        {"method": "weighted_score", "normalize": "min_max", "weights": {"b": 0.3}},
    ],
)
def test_deep_lists(config: dict[str, Any]) -> None:
    assert_same([fusions.build(config)], deep_lists())


def test_more_than_4096_candidates() -> None:
    """Two lists that share nothing: every document ties with one of the other list."""
    lists = [{f"{name}{i:04}": -float(i) for i in range(2_500)} for name in "ab"]
    runs = [Run.from_dict(name, {"q": found}) for name, found in zip("ab", lists, strict=True)]
    relevant = {document: 1 + i % 3 for found in lists for i, document in enumerate(found) if i % 7}
    view = align(Qrels.from_dict({"q": relevant}), runs)
    assert_same([fusions.build(method) for method in ("rrf", "weighted_score")], view)


def test_ties_across_the_last_place_asked_for() -> None:
    """All documents tie in pairs, and whoever is first in no list ties with all others there."""
    lists = [{f"{a}{i:03}": -float(i) for i in range(300)} for a in "abcd"]
    runs = [Run.from_dict(name, {"q": found}) for name, found in zip("wxyz", lists, strict=True)]
    every = {document: 1 for found in lists for document in found}
    view = align(Qrels.from_dict({"q": every}), runs)
    fusion = fusions.build("rrf")
    for cutoff in (1, 5, 6, 7, 8, 50, 199):
        for limits in (DEFAULT, BatchLimits(bits_apart=1 << 44)):
            measures = [parse_measure(f"AP@{cutoff}")]
            expected = plain(fusion, view, measures)
            assert_same_values([fusion], view, measures, [None], limits, [expected])


# The systems that go through it -----------------------------------------------------------------


def test_systems_are_counted_or_ranked_to_the_same_values() -> None:
    view = judged(aligned(DATASETS[0]))
    options: list[dict[str, Any]] = [
        {},
        {"fusion": {"method": "rrf", "weights": {"keyword": 0}}},
        {"top_k": 2},
        {"depth": 2},
        {"min_relevance": 0.02},
        {"fusion": "weighted_score", "weights_by_type": {"hybrid": {"keyword": 1.0}}},
        {"fusion": "rrf_v2", "depth": {"hyde": 1}},
        {"blend": {"method": "linear", "reranker": "reranker", "missing": "below"}},
    ]
    systems = [
        System.model_validate({"name": f"s{i}", "runs": SOURCES} | extra)
        for i, extra in enumerate(options)
    ]
    for system, found in zip(systems, evaluate_systems(systems, view, MEASURES), strict=True):
        expected = np.zeros_like(found.values)
        for index, ranking in rank_queries(system, view):
            expected[:, index] = measure.compute_measures(MEASURES, ranking.runs, ranking.positions)
        assert found.values.tobytes() == expected.tobytes()


def test_an_error_of_one_system_names_it() -> None:
    lacking = {"method": "weighted_score", "normalize": {"method": "max"}}
    view = align(Qrels.from_dict({"q": {"x": 1}}), [Run.from_dict("a", {"q": {"x": -1.0}})])
    odd = System.model_validate({"name": "odd", "runs": ["a"], "fusion": lacking})
    with pytest.raises(AlignmentError, match=r"^system 'odd': "):
        evaluate_systems([odd], view, MEASURES)


# Real collections -------------------------------------------------------------------------------


@cache
def attack() -> AlignedRuns:
    dataset = load_dataset(Path(__file__).parents[2] / "datasets/attack/dataset.yaml")
    return align(dataset.qrels, tuple(dataset.runs.values()), queries=dataset.queries)


def some_trials(view: AlignedRuns, count: int = 4) -> list[Fusion]:
    random = np.random.default_rng(5)
    trials: list[Fusion] = [fusions.build({"method": "comb_med", "normalize": "rank"})]  # many ties
    for i in range(count):
        weights = {s: [1.0, 2.0, float(random.uniform(0.1, 2))][i % 3] for s in view.sources}
        asked = any("question" in roles for roles in view.roles)
        trials += [
            fusions.build({"method": "rrf", "weights": weights, "k": [60, 7.5][i % 2]}),
            fusions.build({"method": "weighted_score", "normalize": "min_max", "weights": weights}),
            *([fusions.build({"method": "rrf_v2", "weights": weights})] if asked else []),
        ]
    return trials


def assert_same_on(view: AlignedRuns) -> None:
    trials = some_trials(view)
    measures = [parse_measure(name) for name in ("nDCG@10", "RR@10", "R@100", "AP", "nDCG")]
    expected = [plain(fusion, view, measures) for fusion in trials]
    for some in (measures, measures[:3]):
        for values, found in zip(expected, counted(trials, view, some), strict=True):
            assert not isinstance(found, Unsupported)
            assert found.tobytes() == values[: len(some)].tobytes()


@pytest.mark.slow
def test_the_attack_collection() -> None:
    assert_same_on(attack())


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_public_collections(collection: str) -> None:
    assert_same_on(parity_aligned(collection))


def test_neither_the_order_of_sources_nor_other_queries_change_a_value() -> None:
    view = attack()
    trials = some_trials(view, 3)
    expected = counted(trials, view, MEASURES)
    turned = counted(trials, view.restrict(view.sources[::-1]), MEASURES)
    odd = np.arange(len(view.queries)) % 2 == 1
    shards = [(keep, counted(trials, view.subset(keep), MEASURES)) for keep in (odd, ~odd)]
    for t, values in enumerate(expected):
        assert not isinstance(values, Unsupported)
        other = turned[t]
        assert not isinstance(other, Unsupported)
        assert values.tobytes() == other.tobytes()
        for keep, parts in shards:
            part = parts[t]
            assert not isinstance(part, Unsupported)
            assert values[:, keep].tobytes() == part.tobytes()

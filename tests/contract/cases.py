"""What the contract tests run every registered method on."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import permutations
from random import Random
from typing import Any

import numpy as np

from fusion_bench.config.models import StrictModel
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import Fusion, Trainable, fusions
from fusion_bench.methods.normalize import normalizers
from fusion_bench.ranking.system_ranking import SystemRanking, rank_candidates

SOURCES = ("bm25", "dense", "hyde")
ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "hyde": frozenset({"hyde"}),
}
QUERIES = ("q1", "q2", "q3")
DOCUMENTS = ("d1", "d2", "d3", "d4", "d5", "d6")
SPACES: dict[str, ScoreSpace] = {"reranker": "unbounded"}

#: What a method cannot do without. A new method with a required field needs a line here, but for
#: ``reranker``.
REQUIRED: dict[str, dict[str, Any]] = {
    "theoretical_min_max": {"lo": dict.fromkeys(SOURCES, 0.0)},
    "tm2c2": {"lo": dict.fromkeys(SOURCES, 0.0)},
    "by_source": {"sources": {"keyword": "min_max", "dense": {"method": "z_score", "constant": 0}}},
    "overlap_rules": {"below": {"weights": {"semantic": 3.0}}},
}
BY_SOURCE = {"method": "by_source", **REQUIRED["by_source"]}
#: Options that give a method another character, beside its defaults.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "rrf": [
        {"normalize": "max_possible"},
        {"normalize": "three_lists", "weights": {"dense": 4.0}},
        {"k": 1, "weights": {"keyword": 0.2, "hyde": 0.7}},
        {"k": {"bm25": 20, "semantic": 0.5}, "normalize": "max_possible"},
        {"k": {"bm25": 5, "dense": 5, "hyde": 5}, "normalize": "three_lists"},
    ],
    "rrf_v2": [
        {"bonus_scope": "per_source", "normalize": "max_possible"},
        {"bonus_scope": "question", "bonus_unit": "relative"},
        {"normalize": "three_lists"},
        {"bonus": {}},
        {"bonus": {3: 0.5, 1: 0.0}},
        {"k": {"keyword": 2, "hyde": 9}, "bonus_scope": "per_source", "bonus_unit": "relative"},
        {"k": {"keyword": 2}, "normalize": "max_possible"},
    ],
    "rbc": [{"phi": 0.3, "weights": {"keyword": 0.2, "hyde": 0.7}}],
    "isr": [{"weights": {"keyword": 0.2, "hyde": 0.7}}],
    "log_isr": [{"weights": {"keyword": 0.2, "hyde": 0.7}}],
    "logn_isr": [{"sigma": 0.5, "weights": {"keyword": 0.2, "hyde": 0.7}}, {"sigma": 0}],
    "weighted_condorcet": [{"weights": {"keyword": 0.2, "hyde": 0.7}}],
    "softmax_rrf": [
        {"temperature": 0.5, "rank_decay": 0, "weights": {"keyword": 0.2, "hyde": 0.7}},
        {
            "k": {"bm25": 20, "semantic": 0.5},
            "temperature": {"bm25": 3, "dense": 0.01},
            "rank_decay": {"hyde": 0.5},
        },
    ],
    "weighted_borda": [{"weights": {"keyword": 0.2, "hyde": 0.7}}],
    "weighted_score": [
        *[
            {"normalize": {"method": name} | REQUIRED.get(name, {})}
            for name in sorted(normalizers.load_all())
        ],
        {"normalize": "min_max", "missing": "zero", "weights": {"keyword": 0.4}},
        {"normalize": "z_score", "missing": "min"},
    ],
    **{
        name: [{"normalize": "min_max"}, {"normalize": "z_score"}]
        for name in ("comb_sum", "comb_max", "comb_min", "comb_med", "comb_anz", "comb_mnz")
    },
    "comb_gmnz": [{"gamma": 0.0, "normalize": "sum"}, {"gamma": 1.7, "normalize": BY_SOURCE}],
    **{
        name: [{"normalize": BY_SOURCE}, {"normalize": "max", "weights": {"keyword": 0.4}}]
        for name in ("mixed", "wmnz", "max_score")
    },
    "weighted_sum": [
        {"normalize": "z_score", "missing": "min", "weights": {"keyword": 0.4}},
        {"normalize": BY_SOURCE},
    ],
    "tm2c2": [{"weights": {"keyword": 0.4}}],
    "dbsf": [{"clip": False}, {"clip": True}],
    "log_odds": [
        {"gating": "softplus", "weights": {"keyword": 0.4}},
        {"normalize": "min_max", "exponent": 1.0},
    ],
    "logistic": [{"alpha": 0.3, "beta": 2.0, "base_rate": 0.01}],
    "by_source": [{"sources": {"dense": "sigmoid"}, "default": "min_max_inverted"}],
    "prob_fuse": [{"segments": 3, "unjudged": "skip"}],
    "seg_fuse": [{"normalize": "z_score"}],
    "slide_fuse": [{"window": 1}],
    "logistic_regression": [{"l2": 100.0}],
    "coordinate_ascent": [{"measure": "AP", "rounds": 1}],
    "lambdamart": [{"trees": 5, "least_leaf": 1}],
    "linear": [
        {"beta": 0.3, "retrieval": retrieval, "missing": "below"}
        for retrieval in ("fused", "fused_max_possible", "fused_min_max", "reciprocal_rank")
    ],
    "position_aware": [{"retrieval": "reciprocal_rank", "missing": "zero", "depth": 3}],
    "replace": [{"depth": 2, "missing": "below", "min_score": 0.4, "tail": "drop"}],
    "entropy_alpha": [{"steepness": -3, "low": 0.0, "high": 1.0, "depth": 2}],
    "margin_silencing": [{"margin": 2.0, "window": 2, "floor": 0.2}],
    "overlap_rules": [
        {"measure": "rbo", "threshold": 0.5, "above": {"fusion": "comb_sum"}, "below": {}}
    ],
    "rerank_when_ambiguous": [{"signal": "variation", "depth": 3, "threshold": 0.4}],
    "regression": [{"factors": [3.0], "ridge": 1.0, "folds": 2}],
}

Dataset = tuple[Mapping[str, Mapping[str, Mapping[str, float]]], Mapping[str, Mapping[str, float]]]


def examples(registry: Mapping[str, type[StrictModel]]) -> Iterator[dict[str, Any]]:
    """Configurations of every method of a registry; fails for one that nobody wrote down."""
    for name, model in registry.items():
        required = {
            key
            for key, field in model.model_fields.items()
            if field.is_required() and key != "method"
        }
        needed = {"reranker": "reranker"} if "reranker" in required else {}
        needed |= REQUIRED.get(name, {})
        lacking = required - set(needed)
        assert not lacking, f"contract tests: tell REQUIRED what {name!r} needs: {sorted(lacking)}"
        for options in [{}, *VARIANTS.get(name, [])]:
            yield {"method": name} | needed | options


def normalizer_examples() -> list[dict[str, Any]]:
    return list(examples(normalizers.load_all()))


def fusion_examples() -> list[dict[str, Any]]:
    return list(examples(fusions.load_all()))


def blend_examples() -> list[dict[str, Any]]:
    return list(examples(blends.load_all()))


def clipped_sum(lists: Mapping[str, Mapping[str, float]], most: float = 2.0) -> dict[str, float]:
    """An own fusion: sums of scores up to a limit, which flattens the rest."""
    scores: dict[str, float] = {}
    for ranked_list in lists.values():
        for document, score in ranked_list.items():
            scores[document] = scores.get(document, 0.0) + min(score, most)
    return scores


def clip_scores(scores: FloatArray, most: float = 1e12) -> FloatArray:
    """An own normalizer: scores up to a limit."""
    return np.minimum(scores, most)


def half_each(fused: Mapping[str, float], reranked: Mapping[str, float]) -> dict[str, float]:
    """An own blend: the mean of both scores."""
    return {document: (fused[document] + reranked[document]) / 2 for document in fused}


def own_fusions() -> list[dict[str, Any]]:
    """A function of one's own, by its name, with its default and with another value."""
    method = fusions.add_own(clipped_sum).model_fields["method"].default
    return [{"method": method}, {"method": method, "most": 3.0}]


def own_normalizers() -> list[dict[str, Any]]:
    method = normalizers.add_own(clip_scores).model_fields["method"].default
    return [{"method": method}, {"method": method, "most": 2.0}]


def own_blends() -> list[dict[str, Any]]:
    method = blends.add_own(half_each).model_fields["method"].default
    return [{"method": method, "reranker": "reranker", "depth": depth} for depth in (3, 50)]


def random_dataset(seed: int, *, sources: int = 3) -> Dataset:
    """Lists full of ties, some of them missing, and a rerank list; scores are small, positive."""
    random = Random(seed)

    def ranked_list() -> dict[str, float]:
        found = random.sample(DOCUMENTS, random.randint(1, len(DOCUMENTS)))
        return {document: float(random.randint(1, 4)) for document in found}

    runs = {
        name: {query: ranked_list() for query in random.sample(QUERIES, random.randint(1, 3))}
        for name in SOURCES[:sources]
    }
    return runs, {q: {d: float(random.randint(1, 4)) for d in DOCUMENTS} for q in QUERIES}


DATASETS = [random_dataset(seed) for seed in range(8)]
SINGLE_LISTS = [random_dataset(seed, sources=1) for seed in range(8)]
ORDERS = list(permutations(SOURCES))
_ALIGNED: dict[object, AlignedRuns] = {}
_FITTED: dict[object, Fusion] = {}


def aligned(
    dataset: Dataset, *, queries: tuple[str, ...] = QUERIES, order: tuple[str, ...] | None = None
) -> AlignedRuns:
    """The data set on these judged queries, its sources in this order; ties go by document id."""
    if not any(dataset is kept for kept in (*DATASETS, *SINGLE_LISTS)):
        return _align(dataset, queries, order)
    key = (id(dataset), queries, order)
    if key not in _ALIGNED:
        _ALIGNED[key] = _align(dataset, queries, order)
    return _ALIGNED[key]


def _align(
    dataset: Dataset, queries: tuple[str, ...], order: tuple[str, ...] | None
) -> AlignedRuns:
    runs, reranks = dataset
    # Every source answers this one, so that `align` finds it to have a query in common.
    padded = {name: dict(lists) | {"shared by all": {"d1": 1.0}} for name, lists in runs.items()}
    judged = {query: {"d1": 1} for query in (*queries, "shared by all")}
    return align(
        Qrels.from_dict(judged),
        [Run.from_dict(n, padded[n], roles=ROLES[n]) for n in order or tuple(padded)],
        rerankers=[Run.from_dict("reranker", {"shared by all": {"d1": 1.0}} | dict(reranks))],
        spaces=SPACES,
    )


def training_runs() -> AlignedRuns:
    """Judged queries of their own, for what is trained: no score of a contract test is in-sample.

    Every source has a relevant document at rank 1 of some query.
    """
    random = Random(7)
    queries = [f"t{n}" for n in range(8)]
    runs = {
        name: {
            query: dict.fromkeys(random.sample(DOCUMENTS, 5), 0.0)
            | {DOCUMENTS[n % 6]: float(9 + n)}
            | {document: float(random.randint(1, 4)) for document in DOCUMENTS[:3]}
            for n, query in enumerate(queries)
        }
        for name in SOURCES
    }
    judged = {
        query: {d: random.randint(0, 2) for d in DOCUMENTS[:4]} | {DOCUMENTS[n % 6]: 2}
        for n, query in enumerate(queries)
    }
    return align(
        Qrels.from_dict(judged),
        [Run.from_dict(name, lists, roles=ROLES[name]) for name, lists in runs.items()],
    )


def ready_fusion(config: Mapping[str, Any]) -> Fusion:
    """The fusion; one that is trained, fitted to :func:`training_runs`."""
    fusion = fusions.build(dict(config))
    if not isinstance(fusion, Trainable):
        return fusion
    key = ("fitted", fusion.model_dump_json())
    if key not in _FITTED:
        _FITTED[key] = fusion.cross_fit(training_runs())
    return _FITTED[key]


def ranked(
    dataset: Dataset,
    fusion: Mapping[str, Any],
    blend: Mapping[str, Any] | None = None,
    *,
    queries: tuple[str, ...] = QUERIES,
    order: tuple[str, ...] | None = None,
) -> SystemRanking:
    runs = aligned(dataset, queries=queries, order=order)
    system = System.model_validate(
        {
            "name": "s",
            "runs": runs.sources,
            "fusion": ready_fusion(fusion),
            "blend": blend or "none",
        }
    )
    return rank_candidates(system, runs)


def per_query(ranking: SystemRanking) -> dict[str, dict[str, tuple[int, float]]]:
    """Query → document → position and score, to the last bit."""
    view = ranking.runs
    return {
        query: {
            view.vocabulary[view.documents[n]]: (
                int(ranking.positions[n]),
                float(ranking.scores[n]),
            )
            for n in range(view.offsets[q], view.offsets[q + 1])
        }
        for q, query in enumerate(view.queries)
    }


def snapshot(runs: AlignedRuns) -> dict[str, bytes]:
    """The bytes of every array."""
    arrays = {field.name: getattr(runs, field.name) for field in fields(runs)}
    return {key: v.tobytes() for key, v in arrays.items() if isinstance(v, np.ndarray)}


def equal(one: StrictModel, other: StrictModel) -> bool:
    return type(one) is type(other) and one == other


def with_weights(config: Mapping[str, Any], factor: float) -> dict[str, Any] | None:
    """The configuration with every source's weight named and multiplied; None = has no weights."""
    fusion: Fusion = fusions.build(dict(config))
    if "weights" not in type(fusion).model_fields:
        return None
    weights = fusion.source_weights(SOURCES, [ROLES[name] for name in SOURCES])
    named = {name: factor * float(w) for name, w in zip(SOURCES, weights, strict=True)}
    return {**config, "weights": named}

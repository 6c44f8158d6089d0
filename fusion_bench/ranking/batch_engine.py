"""Many systems over one view: values per query, or the reason why not.

``FUSION_BENCH_NATIVE=0`` switches it off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, cut_positions
from fusion_bench.measures import Measure
from fusion_bench.measures._base import greatest_cutoff
from fusion_bench.measures.rankings import Ranking, ranked_rows, relevant_candidates
from fusion_bench.methods.blend import Blend, RerankBlend
from fusion_bench.methods.fuse import EngineForm, Fusion, RankSum
from fusion_bench.ranking.blend_counting import (
    BlendCounter,
    BlendFormula,
    is_relevant_enough,
    unscored_by_query,
)
from fusion_bench.ranking.quantized_scores import (
    TopDocuments,
    Which,
    top_documents,
    unsupported_reason,
)
from fusion_bench.ranking.term_sums import (
    BatchLimits,
    MemberPairs,
    RankScorer,
    RoughArray,
    RoughTerms,
    exact_keys,
    is_above,
    sort_pool,
)

try:
    from fusion_bench.ranking import _native
except ImportError:
    _native = None  # type: ignore[assignment] # it was not compiled

#: It counts for one trial, or for so many side by side.
LANES: Final = 8
#: Room for pairs in doubt; where there are more, it is made and the loop runs again.
DOUBT_CAPACITY: Final = 4_096


def is_usable() -> bool:
    """Whether the loop was compiled and is not switched off."""
    return _native is not None and os.environ.get("FUSION_BENCH_NATIVE") != "0"


def count_pairs(
    sums: RoughTerms, pairs: MemberPairs, *, doubt_capacity: int = DOUBT_CAPACITY
) -> tuple[IntArray, IntArray, IntArray]:
    """Count, for each member, the other documents that stand above it for certain.

    Args:
        sums: For L trials, at most ``LANES``, of at most 16 tables.
        pairs: n members and their P pairs.
        doubt_capacity: Pairs in doubt to make room for at first.

    Returns:
        (n, L) how many are above; and of each pair in doubt the trial and the index, (d,) each.
    """
    lanes = sums.lower.shape[1]
    width = 1 if lanes == 1 else LANES
    tables = tuple(_pad_lanes(table, width, 0.0) for table in sums.tables)
    # Nothing is above or in doubt in a lane that is only there to fill up.
    lower = _pad_lanes(sums.lower[pairs.members], width, np.inf)
    upper = _pad_lanes(sums.upper[pairs.members], width, np.inf)
    above = np.empty((len(pairs.members), width), dtype=np.int64)
    room, doubts = 0, doubt_capacity
    while doubts > room:
        room = doubts
        pair, between = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.uint8)
        doubts = _native.count(
            tables, sums.codes, pairs.starts, lower, upper, above, pair, between, width
        )
    which, lane = np.nonzero(np.unpackbits(between[:doubts, None], axis=1, bitorder="little"))
    return above[:, :lanes], lane, pair[:doubts][which]


def _pad_lanes(table: RoughArray, width: int, value: float) -> NDArray[np.float32]:
    """(n, width) and contiguous: the given columns, and ``value`` in those that are missing."""
    missing = width - table.shape[1]
    if missing:
        table = np.pad(table, ((0, 0), (0, missing)), constant_values=value)
    return np.ascontiguousarray(table, dtype=np.float32)


def count_ranks(scorer: RankScorer, lanes: slice, limit: int | None) -> IntArray:
    """(L, R): the place of every relevant candidate in its query, for these trials.

    Beyond the limit a place may be any that is beyond it, and need not be the only one there.
    """
    ranks = np.repeat((scorer.layout.above + 1)[:, None], lanes.stop - lanes.start, axis=1)
    if len(scorer.layout.pairs.members):
        _count_pairs(scorer, lanes, ranks)
    for pool in scorer.layout.pools:
        for lane, trial in enumerate(range(lanes.start, lanes.stop)):
            keys = partial(exact_keys, scorer.runs, scorer.trials[trial])
            scores = scorer.precise_scores(trial, pool)
            for member, place in sort_pool(pool, scores, limit, keys):
                ranks[member, lane] = place
    return np.ascontiguousarray(ranks.T)


def _count_pairs(scorer: RankScorer, lanes: slice, ranks: IntArray) -> None:
    """Add to ``ranks``, (R, L), how many are above: those in doubt by exact keys and tie rule."""
    terms, pairs = scorer.rough_terms(lanes), scorer.layout.pairs
    if is_usable() and len(terms.tables) <= scorer.limits.native_tables:
        above, lane, pair = count_pairs(terms, pairs)
    else:
        above, lane, pair = count_in_numpy(terms, pairs, scorer.limits.counted_pairs)
    ranks[pairs.members] += above
    member = pairs.members[np.searchsorted(pairs.starts, pair, side="right") - 1]
    for column, trial in enumerate(scorer.trials[lanes]):
        chosen = np.flatnonzero(lane == column)
        if len(chosen):
            members, others = member[chosen], pairs.others[pair[chosen]]
            is_beaten = is_above(scorer.runs, trial, scorer.layout.relevant[members], others)
            ranks[:, column] += np.bincount(members[is_beaten], minlength=len(ranks))


def count_in_numpy(
    terms: RoughTerms, pairs: MemberPairs, at_once: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Count as :func:`count_pairs` does, about so many pairs at once."""
    lower, upper = terms.lower[pairs.members], terms.upper[pairs.members]
    above = np.empty(lower.shape, dtype=np.int64)
    doubts = []
    targets = np.arange(at_once, pairs.starts[-1] + at_once, at_once)
    cuts = np.unique(np.searchsorted(pairs.starts, targets, side="left"))
    start = 0
    for stop in np.minimum(cuts, len(lower)).tolist():
        first, last = pairs.starts[[start, stop]]
        sizes = np.diff(pairs.starts[start : stop + 1])
        parts = (
            table.take(codes[first:last], axis=0, mode="clip")
            for table, codes in zip(terms.tables, terms.codes, strict=True)
        )
        scores = reduce(np.add, parts)
        over = scores > np.repeat(upper[start:stop], sizes, axis=0)
        is_doubtful = over != (scores >= np.repeat(lower[start:stop], sizes, axis=0))
        starts = pairs.starts[start:stop] - first
        np.add.reduceat(over, starts, axis=0, dtype=np.int64, out=above[start:stop])
        doubts.append(np.flatnonzero(is_doubtful) + first * lower.shape[1])
        start = stop
    pair, lane = np.divmod(np.concatenate(doubts), lower.shape[1])
    return above, lane, pair


@dataclass(frozen=True)
class Unsupported:
    """Why a system must go the plain way.

    Attributes:
        reason: A few words.
    """

    reason: str


class SystemSpec(NamedTuple):
    """A plain system without its sources.

    Attributes:
        fusion: How it fuses.
        blend: Its blend; None = none.
        min_relevance: As a system has it.
        top_k: As a system has it.
    """

    fusion: Fusion
    blend: Blend | None = None
    min_relevance: float | None = None
    top_k: int | None = None


@dataclass(frozen=True, eq=False)
class SystemPlan:
    """How one system is evaluated.

    Attributes:
        fusion: The compiled fusion.
        which: The lists that must be sorted.
        depth: Fused documents that the blend reads.
        formula: The blend; None = none.
    """

    fusion: EngineForm
    which: Which
    depth: int
    formula: BlendFormula | None


def plan_system(
    spec: SystemSpec, runs: AlignedRuns, limits: BatchLimits
) -> SystemPlan | Unsupported:
    """How to evaluate a system of one view, or why the batch engine cannot."""
    fusion = spec.fusion.engine_form(runs)
    if fusion is None:
        return Unsupported(f"{spec.fusion.method} has no form that can be counted")
    reason = unsupported_reason(runs, fusion, limits)
    if reason is not None:
        return Unsupported(reason)
    if spec.blend is None:
        return SystemPlan(fusion, "relevant", 0, None)
    if not isinstance(spec.blend, RerankBlend):
        return Unsupported(f"{spec.blend.method} has no form that can be counted")
    return _rerank_plan(spec, spec.blend, fusion, runs)


def _rerank_plan(
    spec: SystemSpec,
    blend: RerankBlend,
    fusion: EngineForm,
    runs: AlignedRuns,
) -> SystemPlan | Unsupported:
    depth = min(blend.depth, int(np.diff(runs.offsets).max(initial=0)))
    mixture = blend.engine_form(depth)
    if mixture is None:
        return Unsupported(f"{blend.method} has no form that can be counted")
    if blend.reranker not in runs.rerankers or blend.reranker not in runs.spaces:
        return Unsupported(f"no rerank list {blend.reranker!r} with a score space")
    greatest = None
    if mixture.retrieval == "fused_max_possible":
        greatest = spec.fusion.max_possible(runs)
        some = greatest[np.diff(runs.offsets) > 0]
        if not ((some > 0) & (some < np.inf)).all():
            return Unsupported("a greatest possible score that is not above 0, or not known")
    which: Which = "relevant"
    if blend.missing == "error":
        unscored = unscored_by_query(runs, runs.rerankers.index(blend.reranker))
        which = "all" if unscored.any() else which
    space = runs.spaces[blend.reranker]
    formula = BlendFormula(runs, blend, mixture, space, spec.min_relevance, greatest)
    return SystemPlan(fusion, which, depth, formula)


class BatchResult(NamedTuple):
    """What could be counted.

    Attributes:
        values: (M, Q).
        unresolved: (Q,): queries that must be ranked; their values mean nothing.
    """

    values: FloatArray
    unresolved: BoolArray


def evaluate_batch(
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    limits: BatchLimits | None = None,
) -> tuple[BatchResult | Unsupported, ...]:
    """Evaluate systems of one view; the more at once, the faster each.

    Args:
        specs: (T,).
        runs: A view of the sources that take part in each of them.
        measures: (M,).
        limits: Of time and memory; None = the defaults. They change no value.

    Returns:
        For each system its values, to the last bit those of ``compute_measures`` after
        ranking the candidates wherever they are not left open, or why they must be had from there.
    """
    limits = limits or BatchLimits()
    for measure in measures:
        if measure.required_ranks != "relevant" or measure.judged_only:
            reason = f"{measure.name} looks at more than the relevant documents"
            return (Unsupported(reason),) * len(specs)
    results: dict[int, BatchResult | Unsupported] = {}
    sums: dict[tuple[object, ...], list[tuple[int, RankSum]]] = {}
    others: dict[tuple[Which, str], list[tuple[int, SystemPlan]]] = {}
    for number, spec in enumerate(specs):
        plan = plan_system(spec, runs, limits)
        if isinstance(plan, Unsupported):
            results[number] = plan
        # Blends and dropped scores need more of a list than the places of relevant documents.
        elif isinstance(plan.fusion, RankSum) and spec.blend is None and spec.min_relevance is None:
            sums.setdefault(RankScorer.group_key(plan.fusion), []).append((number, plan.fusion))
        else:
            key = f"{type(spec.fusion).__name__} {spec.fusion.model_dump_json()}"
            others.setdefault((plan.which, key), []).append((number, plan))
    for number, placed in _count_rank_sums(list(sums.values()), specs, runs, measures, limits):
        values = _measure_values(runs, placed, measures, specs[number].top_k)
        results[number] = BatchResult(values, np.zeros(len(runs.queries), dtype=bool))
    for plans, tops in _fuse_groups(runs, others, limits):
        for number, plan in plans:
            results[number] = _count_system(specs[number], plan, tops, measures)
    return tuple(results[number] for number in range(len(specs)))


def _count_rank_sums(
    groups: Sequence[Sequence[tuple[int, RankSum]]],
    specs: Sequence[SystemSpec],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    limits: BatchLimits,
) -> Iterator[tuple[int, IntArray]]:
    """(R,) places of each sum of terms by rank, up to the last one that matters."""
    for members in groups:
        numbers, forms = zip(*members, strict=True)
        scorer = RankScorer(runs, forms, limits)
        depths = [_deepest_rank(measures, specs[number].top_k) for number in numbers]
        deepest = None if None in depths else max(depth or 0 for depth in depths)
        for start in range(0, len(members), LANES):
            lanes = slice(start, min(start + LANES, len(members)))
            yield from zip(numbers[lanes], count_ranks(scorer, lanes, deepest), strict=True)


def _fuse_groups(
    runs: AlignedRuns,
    groups: Mapping[tuple[Which, str], list[tuple[int, SystemPlan]]],
    limits: BatchLimits,
) -> Iterator[tuple[list[tuple[int, SystemPlan]], TopDocuments]]:
    """Systems of one fusion with its lists, a few fusions at a time."""
    kinds: tuple[Which, Which] = ("relevant", "all")
    for which in kinds:
        plans_by_fusion = [members for (kind, _), members in groups.items() if kind == which]
        for start in range(0, len(plans_by_fusion), limits.fusions):
            some = plans_by_fusion[start : start + limits.fusions]
            depth = max(plan.depth for members in some for _, plan in members)
            trials = [members[0][1].fusion for members in some]
            yield from zip(some, top_documents(runs, which, trials, depth, limits), strict=True)


def _count_system(
    spec: SystemSpec, plan: SystemPlan, tops: TopDocuments, measures: Sequence[Measure]
) -> BatchResult | Unsupported:
    lists, places = tops.lists, tops.relevant_ranks
    is_open = np.zeros(len(lists.queries), dtype=bool)
    if plan.formula is not None:
        blending = BlendCounter(plan.formula, tops)
        if plan.formula.blend.missing == "error" and blending.has_unscored():
            return Unsupported("documents without a rerank score")
        places, is_open = blending.count_ranks()
    elif spec.min_relevance is not None:
        kept = is_relevant_enough(tops, lists.member, spec.min_relevance)
        is_open[lists.owner[kept < 0]] = True
        places = np.where(kept == 0, 0, places)
    by_storage = np.empty_like(places)
    by_storage[lists.which] = places
    left = np.zeros(len(tops.runs.queries), dtype=bool)
    left[lists.queries[is_open]] = True
    return BatchResult(_measure_values(tops.runs, by_storage, measures, spec.top_k), left)


def _measure_values(
    runs: AlignedRuns, placed: IntArray, measures: Sequence[Measure], top_k: int | None
) -> FloatArray:
    """(M, Q): what ``compute_measures`` gives, to the last bit.

    Args:
        runs: The view.
        placed: (R,): places of its candidates of grade 1 or better, as stored; 0 = dropped.
        measures: (M,).
        top_k: Where the final list is cut; None = nowhere.
    """
    ranking = _RelevantRanking(runs, placed, _deepest_rank(measures, top_k))
    values: FloatArray = np.zeros((len(measures), len(runs.queries)))
    for m, measure in enumerate(measures):
        values[m] = measure.compute_values(ranking)
    return values


def _deepest_rank(measures: Sequence[Measure], top_k: int | None) -> int | None:
    """The last place that matters; None = all do."""
    cuts = [top_k, greatest_cutoff(measures)]
    return min((cut for cut in cuts if cut is not None), default=None)


class _RelevantRanking(Ranking):
    """A ranking of which only the (R,) relevant documents up to a limit are placed."""

    def __init__(self, runs: AlignedRuns, placed: IntArray, limit: int | None) -> None:
        super().__init__(runs, placed, judged_only=False)
        kept = cut_positions(placed, limit)
        self._relevant[1] = ranked_rows(runs, relevant_candidates(runs), kept)

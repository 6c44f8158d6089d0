"""The final order of the candidates under one system, for every query, with its scores.

A fused list is sorted by quantized keys, and neighbors in doubt by their exact keys; systems of
one fusion share it. A blend then orders the first documents again, from exact scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, ViewCache, cached_by_view
from fusion_bench.data.grouped_rows import count_within_queries, to_offsets
from fusion_bench.data.ordering import (
    BoolArray,
    FloatArray,
    IntArray,
    cut_positions,
    make_readonly,
    positions,
    score_keys,
    tie_group_starts,
)
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import Fused
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import EngineForm, Fusion
from fusion_bench.ranking.batch_engine import SystemSpec, Unsupported, plan_system
from fusion_bench.ranking.blend_counting import BlendFormula, RerankWindow
from fusion_bench.ranking.quantized_scores import ListBlock, QuantizedScores, quantized_scores
from fusion_bench.ranking.term_sums import BatchLimits

#: Fused lists that a view remembers, for systems that differ only in their blend.
FUSED_LISTS_KEPT: Final = 4
#: Greater than −∞, so that a document without a score is sorted before one that is dropped.
LEAST_KEY: Final = np.finfo(np.float64).min
#: The whole lists of a report are sorted and blended as the lists of a batch are.
LIMITS: Final = BatchLimits()


class RankedLists(NamedTuple):
    """The final lists of one system.

    Attributes:
        positions: (N,): 1-based position before ``top_k`` cuts; 0 = dropped.
        tie_starts: (N,): position of the first member of each candidate's group of ties.
    """

    positions: IntArray
    tie_starts: IntArray


@dataclass(frozen=True, eq=False)
class _FusedLists:
    """The fused lists of a view, one after the other.

    Attributes:
        runs: The view.
        fusion: How they were fused.
        candidates: (N,): best first within each query.
        is_new: (N,): whether a candidate does not tie with the one before it.
        windows: Their first documents, for all blends of them.
    """

    runs: AlignedRuns
    fusion: EngineForm
    candidates: IntArray
    is_new: BoolArray
    windows: ViewCache = field(default_factory=ViewCache)

    @cached_property
    def scores(self) -> FloatArray:
        """(N,): exact scores, as the fusion reports them."""
        return np.minimum(self.fusion.scores(self.runs, self.candidates), self.fusion.ceiling)

    @cached_property
    def group(self) -> IntArray:
        """(N,): which group of ties each candidate is in."""
        return np.cumsum(self.is_new)

    def window(self, queries: IntArray, depth: int) -> RerankWindow:
        """The first ``depth`` documents of these lists, with exact scores."""
        sizes = np.diff(self.runs.offsets)[queries, None]
        place = np.minimum(np.arange(depth), sizes - 1)
        slots = self.runs.offsets[queries, None] + place
        valid = np.arange(depth) < sizes
        exact = np.zeros((len(queries), 1))
        return RerankWindow(
            queries, queries, self.candidates[slots], valid, lambda: self.scores[slots], exact
        )


def rank_system(spec: SystemSpec, runs: AlignedRuns) -> RankedLists | Unsupported:
    """The final lists of one system, the same as the plain path's.

    Args:
        spec: The system.
        runs: A view of the sources that take part in it.
    """
    plan = plan_system(spec, runs, LIMITS)
    if isinstance(plan, Unsupported):
        return plan
    if spec.min_relevance is not None:
        return Unsupported("min_relevance drops documents by their exact scores")
    fused = _fused_lists(runs, spec.fusion, plan.fusion)
    if plan.formula is None:
        return _list_positions(runs, fused.candidates, fused.is_new)
    return _blended_lists(plan.formula, fused, plan.depth)


@cached_by_view(
    keep=FUSED_LISTS_KEPT, key=lambda fusion, _: (type(fusion), fusion.model_dump_json())
)
def _fused_lists(
    runs: AlignedRuns,
    fusion: Fusion,  # noqa: ARG001 - the key
    form: EngineForm,
) -> _FusedLists:
    maker = quantized_scores(runs, "all", form, LIMITS)
    candidates = np.empty(len(runs.documents), dtype=np.int64)
    is_new = np.ones(len(candidates), dtype=bool)
    for number, block in enumerate(maker.lists.blocks):
        slots, documents, apart = _sorted_block(maker, number, block)
        _resolve_doubts(runs, form, documents, apart)
        candidates[slots], is_new[slots] = documents, apart
    return _FusedLists(runs, form, candidates, is_new)


def _sorted_block(
    maker: QuantizedScores, number: int, block: ListBlock
) -> tuple[IntArray, IntArray, BoolArray]:
    """Each document's slot among all lists, the document, and whether it is behind the one before.

    That is open where two quantized scores are near each other: then it is False.
    """
    lists = maker.lists
    given = maker.block_keys(number)
    given.keys.sort(axis=1)
    scores = given.keys >> given.bits
    column = np.arange(block.width)
    inside = column < lists.sizes[block.rows, None]
    starts = lists.starts[block.rows, None]
    apart = np.ones(inside.shape, dtype=bool)
    np.greater(np.diff(scores, axis=1), maker.slack, out=apart[:, 1:])
    documents = starts + (given.keys & ((1 << given.bits) - 1))
    return (starts + column)[inside], documents[inside], apart[inside]


def _resolve_doubts(
    runs: AlignedRuns, fusion: EngineForm, documents: IntArray, is_new: BoolArray
) -> None:
    """Put neighbors that are not apart in the order of their exact keys; mark what ties."""
    crowded = ~is_new
    crowded[:-1] |= crowded[1:]
    at = np.flatnonzero(crowded)
    if not len(at):
        return
    some, chain = documents[at], np.cumsum(is_new[at])
    keys = score_keys(fusion.scores(runs, some))
    same = chain[1:] == chain[:-1]
    wrong = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & (some[1:] < some[:-1]))
    wrong &= same
    if wrong.any():
        bad = np.zeros(chain[-1] + 1, dtype=bool)
        bad[chain[1:][wrong]] = True
        moved = np.flatnonzero(bad[chain])
        order = moved[np.lexsort((some[moved], -keys[moved], chain[moved]))]
        some[moved], keys[moved] = some[order], keys[order]
        documents[at] = some
    is_new[at[1:]] = ~same | (keys[1:] != keys[:-1])


def _blended_lists(
    formula: BlendFormula, fused: _FusedLists, depth: int
) -> RankedLists | Unsupported:
    runs = fused.runs
    sizes = np.diff(runs.offsets)
    candidates, is_new = fused.candidates.copy(), fused.is_new.copy()
    kept = np.ones(len(candidates), dtype=bool)
    queries = np.flatnonzero((sizes > 0) & ~formula.has_few(sizes))
    step = max(LIMITS.window_documents // max(depth, 1), 1)
    for start in range(0, len(queries), step):
        some = queries[start : start + step]
        make_window, key = partial(fused.window, some, depth), (some.tobytes(), depth)
        window = fused.windows.lookup(_FusedLists.window, key, make_window)
        scores = formula.final_scores(window)
        heads = scores.window
        if formula.blend.missing == "error" and (heads.is_candidate & ~scores.has_score).any():
            return Unsupported("documents without a rerank score")
        keys = score_keys(scores.scores)
        keys[~scores.is_kept] = np.nan  # behind all others
        order = _window_order(keys)
        keys = np.take_along_axis(keys, order, axis=1)
        slots = runs.offsets[some, None] + np.arange(depth)
        new = np.ones(keys.shape, dtype=bool)
        new[:, 1:] = keys[:, 1:] != keys[:, :-1]
        if len(tied := np.flatnonzero(~new.all(axis=1))):  # they tie where they did when fused, too
            group = fused.group[np.where(heads.is_candidate[tied], slots[tied], 0)]
            group = np.take_along_axis(group, order[tied], axis=1)
            new[tied, 1:] |= group[:, 1:] != group[:, :-1]
        inside = slots[heads.is_candidate]
        candidates[inside] = np.take_along_axis(heads.candidates, order, axis=1)[heads.is_candidate]
        is_new[inside], kept[inside] = new[heads.is_candidate], ~np.isnan(keys)[heads.is_candidate]
    longer = queries[sizes[queries] > depth]
    is_new[runs.offsets[longer] + depth] = True
    if formula.blend.tail == "drop":
        beyond = np.zeros(len(runs.queries), dtype=bool)
        beyond[longer] = True
        kept &= ~beyond[runs.query_index] | (_whole_places(runs) <= depth)
    return _list_positions(runs, candidates, is_new, kept)


def _window_order(keys: FloatArray) -> IntArray:
    """(m, D): the columns of each row from the greatest key down, equal ones as given; NaN last."""
    # Fast where nothing is NaN or has to stay in place: rows with equal keys are sorted again.
    falling = np.where(np.isnan(keys), np.inf, -np.maximum(keys, LEAST_KEY))
    order = np.argsort(falling, axis=1)
    falling = np.take_along_axis(falling, order, axis=1)
    equal = (falling[:, 1:] == falling[:, :-1]) & (falling[:, 1:] < np.inf)
    rows = np.flatnonzero(equal.any(axis=1))
    order[rows] = np.argsort(-keys[rows], axis=1, kind="stable")
    return order


@cached_by_view()
def _whole_places(runs: AlignedRuns) -> IntArray:
    """(N,): 1, 2, 3 … inside each query."""
    return count_within_queries(runs.offsets)


def _list_positions(
    runs: AlignedRuns, candidates: IntArray, is_new: BoolArray, kept: BoolArray | None = None
) -> RankedLists:
    """Position of each kept candidate within its query's list."""
    if kept is None or kept.all():
        place = _whole_places(runs)
    else:
        counts = np.bincount(runs.query_index[kept], minlength=len(runs.queries))
        place = count_within_queries(to_offsets(counts))
        candidates, is_new = candidates[kept], is_new[kept]
    positions = np.zeros(len(runs.documents), dtype=np.int64)
    positions[candidates] = place
    tie_starts, tied = positions.copy(), np.flatnonzero(~is_new)
    begins = np.diff(tied, prepend=-1) > 1  # behind the first document of a group
    heads = np.maximum.accumulate(np.where(begins, tied - 1, 0))
    tie_starts[candidates[tied]] = place[heads]
    return RankedLists(positions, tie_starts)


#: Fused lists that a view remembers, for systems that differ only in their blend.
FUSED_KEPT = 4


@dataclass(frozen=True, eq=False)
class SystemRanking:
    """The final list of one plain system for every query of ``runs``.

    Attributes:
        runs: The view that was ranked; its N candidates are the rows below.
        scores: Shape (N,): final scores.
        tiers: Shape (N,): see ``Blended``.
        sort_scores: Shape (N,): the scores that decide the order, see ``Blended``.
        fused: The fused list, which decides the order of equal scores.
        ranks_before_cut: Shape (N,): 1-based position before ``top_k`` cuts; 0 = dropped.
        top_k: Where the list is cut; None = nowhere.
    """

    runs: AlignedRuns
    scores: FloatArray
    tiers: np.typing.NDArray[np.int8]
    sort_scores: FloatArray
    fused: Fused
    ranks_before_cut: IntArray
    top_k: int | None = None

    def __post_init__(self) -> None:
        for array in (self.scores, self.tiers, self.sort_scores, self.ranks_before_cut):
            make_readonly(array)

    @cached_property
    def positions(self) -> IntArray:
        """(N,): the final positions; 0 = not in the list."""
        return cut_positions(self.ranks_before_cut, self.top_k)

    def list_rows(self) -> IntArray:
        """The candidates of the final lists, best first in each, query by query."""
        rows = np.flatnonzero(self.positions > 0)
        return np.asarray(rows[np.lexsort((self.positions[rows], self.runs.query_index[rows]))])

    @cached_property
    def tie_starts(self) -> IntArray:
        """(N,): position of the first member of each candidate's group of ties.

        Documents tie if neither the final nor the fused scores tell them apart.
        """
        return tie_group_starts(
            self.ranks_before_cut,
            self.sort_scores,
            self.runs.offsets,
            tiers=self.tiers,
            fused_scores=self.fused.sort_scores,
        )


def rank_candidates(system: System, runs: AlignedRuns) -> SystemRanking:
    """Order the candidates of every query as a plain system does.

    Args:
        system: With one fusion and one blend; :mod:`~fusion_bench.ranking.plain_systems`
            resolves others.
        runs: All sources of the dataset.
    """
    with name_system_in_errors(system):
        view = system.active_runs(runs)
        fused = fused_list(view, system.fusion)
        scores, tiers, sort_scores = system.blend.blend(view, fused, view.spaces)
    if system.min_relevance is not None:
        tiers = np.where(scores < system.min_relevance, -1, tiers).astype(np.int8)
    if isinstance(system.blend, NoBlend) and system.min_relevance is None:
        ranks = fused.positions
    else:
        ranks = positions(sort_scores, view.offsets, tiers=tiers, tie_order=fused.positions)
    return SystemRanking(view, scores, tiers, sort_scores, fused, ranks, system.top_k)


def ranked_lists(system: System, runs: AlignedRuns) -> tuple[AlignedRuns, RankedLists]:
    """The view that a plain system ranks, and its lists.

    Equal to those of :func:`rank_candidates`, which runs only where the batch engine cannot.
    """
    with name_system_in_errors(system):
        view = system.active_runs(runs)
    with suppress(AlignmentError, ConfigError):  # ranking raises it again, naming the system
        lists = _last_lists(view, system_spec(system))
        if not isinstance(lists, Unsupported):
            return view, lists
    ranking = rank_candidates(system, runs)
    return view, RankedLists(ranking.ranks_before_cut, ranking.tie_starts)


@cached_by_view(
    keep=1,
    key=lambda spec: (
        *((type(part), part.model_dump_json()) for part in (spec.fusion, spec.blend) if part),
        spec.min_relevance,
    ),
)
def _last_lists(view: AlignedRuns, spec: SystemSpec) -> RankedLists | Unsupported:
    """The lists, remembered for who asks next what else they say."""
    lists = rank_system(spec, view)
    for array in () if isinstance(lists, Unsupported) else lists:
        make_readonly(array)
    return lists


@cached_by_view(keep=FUSED_KEPT, key=lambda fusion: (type(fusion), fusion.model_dump_json()))
def fused_list(view: AlignedRuns, fusion: Fusion) -> Fused:
    """The fused list of a plain system on its own view of the runs, made once."""
    scores = fusion.fuse(view)
    ranks, top = positions(scores, view.offsets), fusion.max_possible(view)
    fused = Fused(fusion.display_scores(scores), ranks, top, scores)
    for array in fused:
        make_readonly(array)
    return fused


@contextmanager
def name_system_in_errors(
    system: System, where: str = "", *, is_owner: bool = False
) -> Iterator[None]:
    """Say in an error of a value which system it is of.

    Args:
        system: The system.
        where: What of it, with the blank that follows.
        is_owner: The error names a stage of the system.
    """
    try:
        yield
    except (AlignmentError, ConfigError) as error:
        kind = ConfigError if isinstance(error, ConfigError) else AlignmentError
        text = re.sub(r"^system (?=')", "stage ", str(error)) if is_owner else f"{where}{error}"
        raise kind(f"system {system.name!r}: {text}") from None


def system_spec(system: System) -> SystemSpec:
    """A plain system in the terms of the batch engine."""
    blend = None if isinstance(system.blend, NoBlend) else system.blend
    return SystemSpec(system.fusion, blend, system.min_relevance, system.top_k)


def list_scores(ranking: SystemRanking, rows: IntArray) -> FloatArray:
    """(n,): scores that no list gains along its ranks: whoever sorts by them finds its order.

    Documents that the reranker did not score rank below those that it did, whatever their fused
    score. Where that is too high, it is lowered, by one constant for all of them in a list; where
    that would round different scores to one, they count down from the reranker's least score.

    Args:
        ranking: The ranking.
        rows: Its candidates, best first within each query.
    """
    scores, tiers = ranking.sort_scores[rows].copy(), ranking.tiers[rows]
    query = ranking.runs.query_index[rows]
    for tier in np.unique(tiers)[1:]:
        floor = _least_by_query(scores, query, tiers < tier, len(ranking.runs.queries))
        top = -_least_by_query(-scores, query, tiers == tier, len(ranking.runs.queries))
        is_high = np.isfinite(floor) & np.isfinite(top) & (top >= floor)
        shift = np.where(is_high, top - floor + 1, 0.0)
        lower = np.flatnonzero((tiers == tier) & is_high[query])
        if len(lower):
            scores[lower] = _lower_scores(scores[lower], query[lower], shift, floor)
    return scores


def _lower_scores(
    scores: FloatArray, query: IntArray, shift: FloatArray, floor: FloatArray
) -> FloatArray:
    """(n,): scores below the floor of their query, which fall wherever they fell.

    Args:
        scores: Shape (n,), grouped by query, falling within each.
        query: Shape (n,).
        shift: Shape (Q,): what is taken from each score.
        floor: Shape (Q,).
    """
    lowered = scores - shift[query]
    is_same = np.diff(query) == 0
    falls = is_same & (np.diff(score_keys(scores)) < 0)
    is_rounded = is_same & (falls != (np.diff(score_keys(lowered)) < 0))
    is_counted = np.isin(query, query[1:][is_rounded]) | np.isin(
        query, query[score_keys(lowered) >= score_keys(floor)[query]]
    )
    places = np.cumsum(np.concatenate(([0], falls))) + 1
    places -= places[np.searchsorted(query, query)] - 1
    step = np.maximum(1.0, 1e-10 * np.abs(floor))
    return np.where(is_counted, floor[query] - step[query] * places, lowered)


def _least_by_query(
    scores: FloatArray, query: IntArray, is_counted: BoolArray, queries: int
) -> FloatArray:
    """(Q,): the least of the scores that count; inf where none does."""
    least = np.full(queries, np.inf)
    np.minimum.at(least, query[is_counted], scores[is_counted])
    return least

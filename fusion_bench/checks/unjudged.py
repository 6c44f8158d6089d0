"""Unjudged documents of a system: how many there are, and what its values could be with them.

Its values over judged documents only, with unjudged ones filled, and the least and greatest value
that any completion of the judgments gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from fusion_bench.checks.completed_measures import build_model, has_model
from fusion_bench.checks.completions import (
    Ends,
    ListCounts,
    ListParts,
    TopCandidates,
    collect_list,
    count_list,
    find_counted_ends,
    find_list_ends,
)
from fusion_bench.data import ordering
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import query_slices
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.measures import Measure, collect_returned, compute_measures
from fusion_bench.measures._base import greatest_cutoff
from fusion_bench.measures.rankings import ReturnedDocuments, divide_or_zero, join_returned
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.ranking.plain_systems import fit_repeats, plain_systems
from fusion_bench.ranking.system_ranking import ranked_lists
from fusion_bench.ranking.system_scores import query_blocks
from fusion_bench.stats.repeat_variance import mean_of_repeats
from fusion_bench.stats.unjudged import (
    CONDITION,
    JudgmentKind,
    QueryBounds,
    UnjudgedEvidence,
    name_kind,
)

#: Why two of the three views are missing.
SPARSE = (
    "No document is judged not relevant. So the effect of unjudged documents cannot be estimated."
)
#: What is asked for where the dataset does not say why.
DECLARE = (
    f"Every answer needs a condition: it holds {CONDITION}. Declare judgments in dataset.yaml: "
    "pooled (the results of some systems were judged), sparse (links of authors) or complete."
)


def judgment_kind(dataset: Dataset, queries: Collection[str]) -> JudgmentKind:
    """The kind of the judgments of these queries.

    Over judgments of relevant documents only, values over judged documents only see nothing but
    the order among these: a list with its one relevant document at rank 100 scores 1. Nothing in
    such data tells a shallow pool from a bad system, so what the dataset declares decides.
    """
    return recognize_kind(dataset.qrels, queries, dataset.spec.judgments)


def recognize_kind(
    qrels: Qrels, queries: Collection[str], declared: str | None = None
) -> JudgmentKind:
    """The kind of these judgments, by what they are declared as."""
    chosen = set(queries)
    has_irrelevant = any(
        query in chosen and bool((qrels.grades[rows] <= 0).any())
        for query, rows in query_slices(qrels.queries, qrels.offsets)
    )
    return name_kind(declared, has_irrelevant=has_irrelevant)


#: Depth at which the share of unjudged documents is stated.
UNJUDGED_DEPTH = 10


#: Of some queries: their indices among the Q, a view of their candidates, and the position of each
#: candidate before and after ``top_k`` cuts the list; 0 = not in it.
RankedPart: TypeAlias = tuple[IntArray, AlignedRuns, IntArray, IntArray]


def measure_unjudged(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    training: AlignedRuns | None = None,
) -> tuple[UnjudgedEvidence, ...]:
    """What the unjudged documents of a system could change, as means over its repeats.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: (M,).
        training: The queries that trained fusions learn from; None = the evaluated ones.

    Returns:
        (M,).
    """
    repeats = []
    for fitted, lists in fit_repeats(system, runs, training):
        blocks = []
        for first, some in query_blocks(lists, measures):
            parts: list[RankedPart] = []
            for index, plain, part in plain_systems(fitted, some):
                view, (before_cut, _) = ranked_lists(plain, part)
                positions = ordering.cut_positions(before_cut, plain.top_k)
                parts.append((index, view, before_cut, positions))
            blocks.append(measure_lists(lists, parts, measures, first))
        repeats.append(find_evidence(blocks, measures))
    return tuple(map(mean_evidence, zip(*repeats, strict=True)))


class EvidenceParts(NamedTuple):
    """What the lists of some queries say of unjudged documents.

    Attributes:
        share: See :class:`UnjudgedEvidence`, (q,).
        judged_only: Likewise, of each measure, (M, q).
        returned: The documents that values with unjudged ones filled are computed from.
    """

    share: FloatArray
    judged_only: FloatArray
    returned: ReturnedDocuments


def measure_lists(
    runs: AlignedRuns, parts: Sequence[RankedPart], measures: Sequence[Measure], first: int = 0
) -> EvidenceParts:
    """Measure the lists of a system for q queries that follow each other.

    Args:
        runs: All Q queries.
        parts: The lists; their indices are among the q queries.
        measures: (M,).
        first: Number of the first of the q queries among the Q.
    """
    alone = [measure.with_judged_only() for measure in measures]
    size = sum(len(index) for index, *_ in parts)
    judged_only, share = np.zeros((len(measures), size)), np.zeros(size)
    for index, view, before_cut, positions in parts:
        judged_only[:, index] = compute_measures(alone, view, before_cut)
        share[index] = unjudged_share(view, positions)
    lists = [(first + index, view, places) for index, view, _, places in parts]
    returned = collect_returned(runs, lists, cutoff=greatest_cutoff(measures))
    return EvidenceParts(share, judged_only, returned)


def find_evidence(
    blocks: Sequence[EvidenceParts], measures: Sequence[Measure]
) -> tuple[UnjudgedEvidence, ...]:
    """The evidence of a system whose lists are measured.

    Args:
        blocks: Of some queries each, in their order.
        measures: (M,).
    """
    share = np.concatenate([block.share for block in blocks])
    judged_only = np.concatenate([block.judged_only for block in blocks], axis=1)
    returned = join_returned([block.returned for block in blocks])
    return tuple(
        UnjudgedEvidence(share, values, measure.filled_values(returned))
        for measure, values in zip(measures, judged_only, strict=True)
    )


def mean_evidence(repeats: Sequence[UnjudgedEvidence]) -> UnjudgedEvidence:
    """The means over repeats; what has no formula for filled values has none in any."""
    known = [each.filled for each in repeats if each.filled is not None]
    return UnjudgedEvidence(
        share=mean_of_repeats([each.share for each in repeats]),
        judged_only=mean_of_repeats([each.judged_only for each in repeats]),
        filled=mean_of_repeats(known) if len(known) == len(repeats) else None,
    )


def unjudged_share(runs: AlignedRuns, positions: IntArray) -> FloatArray:
    """(Q,): share of unjudged documents among the first 10 returned; 0 where nothing is."""
    top = ordering.rows_within(positions, UNJUDGED_DEPTH)
    query = runs.query_index[top]
    shown = np.bincount(query, minlength=len(runs.queries))
    unknown = np.bincount(query[~runs.judged[top]], minlength=len(runs.queries))
    return unknown / np.maximum(shown, 1)


#: Depth of Judged where the measure has no cutoff.
JUDGED_DEPTH: Final = 10
#: Grades that are tried; where there are more, only those of the judgments are.
MOST_GRADES: Final = 20


def grade_scale(qrels: Qrels | None) -> Sequence[int]:
    """The grades that a judge may give: 0 to the greatest of the judgments, at least 0 and 1."""
    grades = np.zeros(0, dtype=np.int64) if qrels is None else qrels.grades
    greatest = int(grades.max(initial=1))
    if greatest > MOST_GRADES:
        return [0, *np.unique(grades[grades > 0]).tolist()]
    return range(max(greatest, 1) + 1)


def find_bounds(
    measures: Sequence[Measure],
    runs: AlignedRuns,
    parts: ListParts,
    *,
    is_complete: bool | None = None,
) -> tuple[QueryBounds | None, ...]:
    """The bounds of one system.

    Args:
        measures: (M,).
        runs: All Q queries.
        parts: The system's lists.
        is_complete: Whether every candidate is judged; None = of these queries.

    Returns:
        (M,); None = the judgments are complete.
    """
    if runs.is_complete if is_complete is None else is_complete:
        return (None,) * len(measures)
    lists = [*parts]
    count = cache(lambda depth: count_list(runs, lists, cutoff=depth))
    collect = cache(lambda depth: collect_list(runs, lists, cutoff=depth))
    bounds = []
    for measure in measures:
        shown = measure.cutoff or JUDGED_DEPTH
        depth = measure.cutoff if has_model(measure) else shown  # None = all positions count
        ends = _find_ends(measure, count(depth), partial(collect, depth))
        counts = count(shown)
        bounds.append(QueryBounds(divide_or_zero(counts.judged, counts.shown), ends, shown))
    return tuple(bounds)


def _find_ends(
    measure: Measure, counts: ListCounts, collect: Callable[[], TopCandidates]
) -> Ends | None:
    """The least and greatest values; None = completions are not known."""
    if not has_model(measure):
        return None
    if (ends := find_counted_ends(measure, counts)) is not None:
        return ends
    top = collect()
    if (ends := find_list_ends(measure, top)) is not None:
        return ends
    model = build_model(measure, top, sorted({*grade_scale(top.runs.qrels), 1}))
    if model is None:
        return None
    extremes = model.find_extremes()
    return extremes.low, extremes.high


def find_system_bounds(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    *,
    training: AlignedRuns | None = None,
) -> tuple[QueryBounds | None, ...]:
    """The bounds of a system, as means over its repeats.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: (M,).
        training: The queries that trained fusions learn from; None = the evaluated ones.

    Returns:
        (M,); None = the judgments are complete.
    """
    if runs.is_complete:  # nothing needs to be ranked
        return (None,) * len(measures)
    repeats = []
    for fitted, lists in fit_repeats(system, runs, training):
        blocks = [
            find_bounds(measures, part, list_parts(fitted, part), is_complete=False)
            for _, part in query_blocks(lists, measures)
        ]
        repeats.append(combine_bounds(blocks, np.concatenate))
    return combine_bounds(repeats, mean_of_repeats)


def combine_bounds(
    parts: Sequence[Sequence[QueryBounds | None]],
    combine: Callable[[Sequence[FloatArray]], FloatArray],
) -> tuple[QueryBounds | None, ...]:
    """The bounds of one system, (M,), from those of some queries or repeats each.

    No completion gives the mean over repeats a value beyond the mean of their bounds.

    Args:
        parts: (B,) of (M,); None = complete judgments.
        combine: Joins blocks of queries, or takes the mean over repeats.
    """
    combined: list[QueryBounds | None] = []
    for bounds in zip(*parts, strict=True):
        known = [each for each in bounds if each is not None]
        if len(known) < len(bounds):
            combined.append(None)
            continue
        ends = [each.ends for each in known if each.ends is not None]
        joined = None
        if len(ends) == len(known):
            low, high = map(combine, zip(*ends, strict=True))
            joined = low, high
        judged = combine([each.judged for each in known])
        combined.append(QueryBounds(judged, joined, known[0].depth))
    return tuple(combined)

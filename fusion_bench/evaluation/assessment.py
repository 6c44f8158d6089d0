"""Everything measured of one system, repeat by repeat: values, ties, unjudged documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.checks.source_ties import SourceTies, find_source_ties
from fusion_bench.checks.unjudged import (
    EvidenceParts,
    RankedPart,
    combine_bounds,
    find_bounds,
    find_evidence,
    mean_evidence,
    measure_lists,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import NOISE, FloatArray, cut_positions
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.relevant_ranks import Observer
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records import RepeatsResult
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity
from fusion_bench.ranking.plain_systems import fit_repeats, plain_systems
from fusion_bench.ranking.system_ranking import ranked_lists
from fusion_bench.ranking.system_scores import query_blocks
from fusion_bench.stats.repeat_variance import (
    count_disagreements,
    mean_of_repeats,
    repeat_means,
    split_variance,
)
from fusion_bench.stats.unjudged import QueryBounds, UnjudgedEvidence
from fusion_bench.stats.values import MeasuredValues
from fusion_bench.util.formatting import Progress


@dataclass(frozen=True, eq=False)
class Assessment:
    """One system on Q queries and M measures.

    Attributes:
        repeats: Shape (T, M, Q): the values of each repeat; everything else is the mean over T
            repeats.
        ties: What the order of ties could make of the values.
        unjudged: What unjudged documents could change in the primary measure.
        candidates: Documents returned over all queries.
        bounds: (M,): what completions of the judgments make of each measure; None = complete
            judgments.
        source_ties: What ties inside the lists that it reads could make of the values; None = not
            asked.
    """

    repeats: FloatArray
    ties: TieSensitivity
    unjudged: UnjudgedEvidence
    candidates: int
    bounds: tuple[QueryBounds | None, ...]
    source_ties: SourceTies | None = None

    @cached_property
    def values(self) -> FloatArray:
        """(M, Q): the means over the repeats."""
        return mean_of_repeats(self.repeats)

    def primary_values(self, lists: frozenset[str]) -> MeasuredValues:
        """The values of the primary measure.

        Args:
            lists: The lists that differ between the repeats.
        """
        return MeasuredValues(self.values[0], self.repeats[:, 0], lists, self.unjudged)


def assess_system(
    system: System,
    runs: AlignedRuns,
    measures: Sequence[Measure],
    observe: Observer | None = None,
    *,
    training: AlignedRuns | None = None,
) -> Assessment:
    """Measure everything that a report says of one system, as means over its repeats.

    Args:
        system: The system.
        runs: Aligned runs.
        measures: M measures, the primary one first.
        observe: Called with the lists of each part of the queries, on the first repeat.
        training: The queries that trained fusions learn from; None = the evaluated ones.
    """
    observers = {system.name: observe} if observe is not None else {}
    parts = []
    for number, (fitted, lists) in enumerate(fit_repeats(system, runs, training)):
        named = {system.name: fitted}
        parts.append(_assess_repeat(named, lists, measures, {} if number else observers))
    return _mean_assessment([part[system.name] for part in parts])


def _mean_assessment(parts: Sequence[Assessment]) -> Assessment:
    """The means over repeats, with the values of each; of one repeat itself."""
    if len(parts) == 1:
        return parts[0]
    inside = [part.source_ties for part in parts if part.source_ties is not None]
    return Assessment(
        repeats=np.concatenate([part.repeats for part in parts]),
        ties=_mean_ties([part.ties for part in parts]),
        unjudged=mean_evidence([part.unjudged for part in parts]),
        bounds=combine_bounds([part.bounds for part in parts], mean_of_repeats),
        candidates=round(sum(part.candidates for part in parts) / len(parts)),
        source_ties=_combine_source_ties(inside, _mean_ties) if inside else None,
    )


#: Finds what ties inside the lists of systems change: of some queries and their values by system.
FindSourceTies: TypeAlias = Callable[
    [Mapping[str, System], Mapping[str, FloatArray], AlignedRuns], Mapping[str, SourceTies]
]


def _assess_repeat(
    systems: Mapping[str, System],
    runs: AlignedRuns,
    measures: Sequence[Measure],
    observers: Mapping[str, Observer],
    find_ties: FindSourceTies | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Assessment]:
    """Assess systems on one repeat, some queries after the others: that bounds the memory.

    Args:
        systems: Fitted, by name; those that differ only in their blend follow each other, so that
            they share the fused lists.
        runs: Aligned runs, all Q queries.
        measures: M measures, the primary one first.
        observers: By system; called with the lists of each part of the queries.
        find_ties: Finds what ties inside lists change; None = not asked.
        progress: Called with a name, the number of steps that are done, and of all steps.
    """
    blocks: dict[str, list[_Block]] = {name: [] for name in systems}
    for first, part in query_blocks(runs, measures):
        for number, (name, system) in enumerate(systems.items()):
            done = (first * len(systems) + number * len(part.queries)) // len(runs.queries)
            progress(name, done, len(systems))
            block = _assess_block(system, runs, part, measures, first, observers.get(name))
            blocks[name].append(block)
        if find_ties is not None:
            progress("ties", len(systems), len(systems))
            values = {name: each[-1].values for name, each in blocks.items()}
            for name, ties in find_ties(systems, values, part).items():
                blocks[name][-1].source_ties = ties
    assessed = {}
    for name, parts in blocks.items():
        [unjudged] = find_evidence([each.evidence for each in parts], measures[:1])
        inside = [each.source_ties for each in parts if each.source_ties is not None]
        assessed[name] = Assessment(
            repeats=np.concatenate([each.values for each in parts], axis=1)[None],
            ties=_join_ties([each.ties for each in parts]),
            unjudged=unjudged,
            candidates=sum(each.candidates for each in parts),
            bounds=combine_bounds([each.bounds for each in parts], np.concatenate),
            source_ties=_combine_source_ties(inside, _join_ties) if inside else None,
        )
    return assessed


@dataclass(eq=False)
class _Block:
    """One system on q queries that follow each other: see :class:`Assessment`."""

    values: FloatArray
    ties: TieSensitivity
    evidence: EvidenceParts
    candidates: int
    bounds: tuple[QueryBounds | None, ...]
    source_ties: SourceTies | None = None


def _assess_block(
    system: System,
    runs: AlignedRuns,
    block: AlignedRuns,
    measures: Sequence[Measure],
    first: int,
    observe: Observer | None,
) -> _Block:
    size = (len(measures), len(block.queries))
    values, extremes = np.zeros(size), np.zeros((3, *size))
    affected = np.zeros(size[0], dtype=np.int64)
    candidates = 0
    parts: list[RankedPart] = []
    for index, plain, part in plain_systems(system, block):
        view, (placed, tie_starts) = ranked_lists(plain, part)
        positions = cut_positions(placed, plain.top_k)
        values[:, index] = measure.compute_measures(measures, view, positions)
        ties = measure.tie_sensitivity(measures, view, placed, tie_starts, limit=plain.top_k)
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
        candidates += int((positions > 0).sum())
        parts.append((index, view, placed, positions))
        if observe is not None:
            observe(first + index, view, positions)
    lists = [(index, view, positions) for index, view, _, positions in parts]
    return _Block(
        values=values,
        ties=TieSensitivity(affected, *extremes),
        evidence=measure_lists(runs, parts, measures[:1], first),
        candidates=candidates,
        bounds=find_bounds(measures, block, lists, is_complete=runs.is_complete),
    )


def _join_ties(blocks: Sequence[TieSensitivity]) -> TieSensitivity:
    """What ties change for all queries, from what they change for some queries each."""
    columns = [(block.minimum, block.maximum, block.expected) for block in blocks]
    affected = np.sum([block.affected for block in blocks], axis=0)
    return TieSensitivity(
        affected, *(np.concatenate(column, axis=1) for column in zip(*columns, strict=True))
    )


def describe_repeats(
    task: EvaluationSet, system: System, assessment: Assessment
) -> RepeatsResult | None:
    """How far the repeats of a system lie apart on the primary measure; None = there is one.

    Args:
        task: What was evaluated.
        system: The system.
        assessment: What was measured of it.
    """
    if len(assessment.repeats) == 1:
        return None
    values = assessment.repeats[:, 0]
    [means] = repeat_means([values])
    shares = split_variance(values) or (None, None, None)
    pair, disagreeing = count_disagreements(values, noise=NOISE)
    return RepeatsResult(
        lists=tuple(sorted(task.repeat_lists(system))),
        means=tuple(means.tolist()),
        sd=0.0 if (means == means[0]).all() else float(means.std(ddof=1)),
        query_share=shares[0],
        trial_share=shares[1],
        residual_share=shares[2],
        disagreeing_pair=pair,
        disagreeing=disagreeing,
    )


def assess_systems(
    task: EvaluationSet, progress: Progress, details: DetailsCollector | None
) -> dict[str, Assessment]:
    """Assess the systems of an experiment; those of several repeats on each, as means.

    Trained fusions are fitted on each repeat by itself.

    Args:
        task: The experiment on one dataset.
        progress: Called as the work goes on.
        details: Collects what stands behind the values of the first repeat; None = nobody asks.
    """
    systems, dataset = task.experiment.systems, task.dataset
    fitted: dict[str, list[tuple[System, AlignedRuns]]] = {}
    observed = {}
    observe = (lambda _: None) if details is None else details.add_collection(task)
    for name, system in systems.items():
        fitted[name] = [*fit_repeats(system, task.runs, task.training)]
        observed[name] = observe(fitted[name][0][0])
    # One after another, systems that differ only in their blend share the fused lists.
    fusions = [str(system.fusion) for system in systems.values()]
    by_fusion = sorted(systems, key=lambda name: fusions.index(str(systems[name].fusion)))
    assessed: dict[str, list[Assessment]] = {name: [] for name in systems}
    for number, repeat in enumerate(dataset.repeats):
        found = _assess_repeat(
            {n: fitted[n][number][0] for n in by_fusion if number < len(fitted[n])},
            task.runs.repeats[number],
            task.measures,
            {} if number else {name: each for name, each in observed.items() if each is not None},
            partial(
                find_source_ties,
                measures=task.measures,
                ranked_by_column=repeat.ranked_by_column,
                seed=task.experiment.seed,
                samples=task.samples_ties,
            ),
            lambda name, done, total: progress(f"{dataset.name}: {name}", done, total),
        )
        for name, each in found.items():
            assessed[name].append(each)
    return {name: _mean_assessment(each) for name, each in assessed.items()}


def _combine_source_ties(
    parts: Sequence[SourceTies], combine: Callable[[Sequence[TieSensitivity]], TieSensitivity]
) -> SourceTies:
    """What ties inside lists change over repeats or blocks of queries; of one part itself."""
    if len(parts) == 1:
        return parts[0]
    sampled = [each.settlements for each in parts if each.settlements is not None]
    return SourceTies(
        ties=combine([each.ties for each in parts]),
        settlements=max(sampled, default=None),
        unknown=frozenset().union(*(each.unknown for each in parts)),
    )


def _mean_ties(repeats: Sequence[TieSensitivity]) -> TieSensitivity:
    """Bounds of the mean over repeats; a query is affected where it is in any repeat."""
    low, high = (
        np.stack([getattr(each, name) for each in repeats]) for name in ("minimum", "maximum")
    )
    differs = (low != high) & ~(np.isnan(low) & np.isnan(high))
    expected = mean_of_repeats([each.expected for each in repeats])
    affected = differs.any(axis=0).sum(axis=1)
    return TieSensitivity(affected, mean_of_repeats(low), mean_of_repeats(high), expected)

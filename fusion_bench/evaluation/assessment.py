"""Everything measured of one system, repeat by repeat: values, ties, unjudged documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fusion_bench import measures as measure
from fusion_bench.checks.completion_bounds import QueryBounds, find_bounds, mean_bounds
from fusion_bench.checks.source_ties import SourceTies, find_source_ties
from fusion_bench.checks.unjudged import RankedPart, UnjudgedEvidence, find_evidence, mean_evidence
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, cut_positions
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.relevant_ranks import Observer
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records import RepeatsResult
from fusion_bench.experiment.system import System
from fusion_bench.measures import Measure, TieSensitivity
from fusion_bench.ranking.plain_systems import fit_repeats, plain_systems
from fusion_bench.ranking.system_ranking import ranked_lists
from fusion_bench.stats.comparison import NOISE
from fusion_bench.stats.repeat_variance import (
    count_disagreements,
    mean_of_repeats,
    repeat_means,
    split_variance,
)
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
    return _assess_fitted([*fit_repeats(system, runs, training)], measures, observe)


def _assess_fitted(
    repeats: Sequence[tuple[System, AlignedRuns]],
    measures: Sequence[Measure],
    observe: Observer | None,
) -> Assessment:
    """The means over repeats, with the values of each; of one repeat what is measured on it."""
    parts = [
        _assess_repeat(system, runs, measures, None if number else observe)
        for number, (system, runs) in enumerate(repeats)
    ]
    if len(parts) == 1:
        return parts[0]
    return Assessment(
        repeats=np.concatenate([part.repeats for part in parts]),
        ties=_mean_ties([part.ties for part in parts]),
        unjudged=mean_evidence([part.unjudged for part in parts]),
        bounds=mean_bounds([part.bounds for part in parts]),
        candidates=round(sum(part.candidates for part in parts) / len(parts)),
    )


def _assess_repeat(
    system: System, runs: AlignedRuns, measures: Sequence[Measure], observe: Observer | None
) -> Assessment:
    size = (len(measures), len(runs.queries))
    values, extremes = np.zeros(size), np.zeros((3, *size))
    affected = np.zeros(size[0], dtype=np.int64)
    candidates = 0
    parts: list[RankedPart] = []
    for index, plain, part in plain_systems(system, runs):
        view, (placed, tie_starts) = ranked_lists(plain, part)
        positions = cut_positions(placed, plain.top_k)
        values[:, index] = measure.compute_measures(measures, view, positions)
        ties = measure.tie_sensitivity(measures, view, placed, tie_starts, limit=plain.top_k)
        extremes[:, :, index] = ties.minimum, ties.maximum, ties.expected
        affected += ties.affected
        candidates += int((positions > 0).sum())
        parts.append((index, view, placed, positions))
        if observe is not None:
            observe(index, view, positions)
    ties = TieSensitivity(affected, *extremes)
    [unjudged] = find_evidence(runs, parts, measures[:1])
    lists = [(index, view, positions) for index, view, _, positions in parts]
    return Assessment(values[None], ties, unjudged, candidates, find_bounds(measures, runs, lists))


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
    assessed, observed = {}, {}
    observe = (lambda _: None) if details is None else details.add_collection(task)
    for name, system in systems.items():
        fitted[name] = [*fit_repeats(system, task.runs, task.training)]
        observed[name] = observe(fitted[name][0][0])
    # One after another, systems that differ only in their blend share the fused lists.
    fusions = [str(system.fusion) for system in systems.values()]
    by_fusion = sorted(systems, key=lambda name: fusions.index(str(systems[name].fusion)))
    for done, name in enumerate(by_fusion):
        progress(f"{dataset.name}: {name}", done, len(systems))
        assessed[name] = _assess_fitted(fitted[name], task.measures, observed[name])
    progress(f"{dataset.name}: ties", len(systems), len(systems))
    ties: dict[str, list[SourceTies]] = {name: [] for name in systems}
    for number, repeat in enumerate(dataset.repeats):
        present = {n: fitted[n][number][0] for n in systems if number < len(fitted[n])}
        of_repeat = find_source_ties(
            present,
            {name: assessed[name].repeats[number] for name in present},
            task.runs.repeats[number],
            task.measures,
            ranked_by_column=repeat.ranked_by_column,
            seed=task.experiment.seed,
            samples=task.samples_ties,
        )
        for name, each in of_repeat.items():
            ties[name].append(each)
    means = {name: _mean_source_ties(each) for name, each in ties.items()}
    return {name: replace(assessed[name], source_ties=means[name]) for name in systems}


def _mean_source_ties(repeats: Sequence[SourceTies]) -> SourceTies:
    """Bounds of the mean over repeats; of one repeat itself."""
    if len(repeats) == 1:
        return repeats[0]
    sampled = [each.settlements for each in repeats if each.settlements is not None]
    return SourceTies(
        ties=_mean_ties([each.ties for each in repeats]),
        settlements=max(sampled, default=None),
        unknown=frozenset().union(*(each.unknown for each in repeats)),
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

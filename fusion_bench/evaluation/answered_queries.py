"""Which queries have an answer, and which of them a system answers that abstains."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.query_splits import QuerySplit, hash_position, hashed_split
from fusion_bench.errors import DataError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, add_unjudged_queries
from fusion_bench.evaluation.report_records import AbstainResult
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.ranking.query_signals import mask_half, signal_of
from fusion_bench.stats.thresholds import measure_share

#: Hashed with the ids of queries and groups: which calibrate, which choose.
CALIBRATE, CHOOSE = "calibrate", "choose"
#: Why nothing can be said of false answers, and what to write.
NO_UNANSWERABLE: Final = (
    'no query is known to have no answer: write "answerable": false for such queries in '
    "queries.jsonl, or 'without_relevant: unanswerable' in dataset.yaml"
)


class ThresholdQueries(NamedTuple):
    """The queries of a threshold: those with an answer and those without.

    Attributes:
        runs: Aligned, of these queries only; masked where that is asked.
        answerable: Shape (Q,).
        calibrates: Shape (Q,): one unanswerable query a group.
    """

    runs: AlignedRuns
    answerable: BoolArray
    calibrates: BoolArray


def find_queries(task: EvaluationSet, *, mask: bool = False) -> ThresholdQueries:
    """The queries that have an answer, and those that are known to have none, if there are such.

    Args:
        task: With every query of the lists, judged or not.
        mask: Make unanswerable queries of half of the answerable ones.

    Raises:
        DataError: A query that is declared to have no answer has a relevant document.
    """
    runs, name = task.runs.repeats[0], task.dataset.name
    if mask:
        runs, answerable = mask_half(runs)
    else:
        answerable = ~no_relevant(runs, runs.binary_relevance)
        declared = np.array([value == "false" for value in runs.values_of("answerable")])
        if (declared & answerable).any():
            query = runs.queries[int(np.argmax(declared & answerable))]
            raise DataError(
                f"{name}: query {query!r} is declared 'answerable: false' and has a relevant "
                "document: correct one of the two"
            )
        if task.dataset.spec.without_relevant == "unanswerable":
            qrels = task.dataset.qrels
            judged = {*(qrels.queries[row] for row in np.flatnonzero(np.diff(qrels.offsets)))}
            declared |= ~answerable & [query in judged for query in runs.queries]
        keep = declared | answerable
        runs, answerable = runs.subset(keep), answerable[keep]
    first: dict[str, int] = {}
    for row in sorted(
        np.flatnonzero(~answerable).tolist(),
        key=lambda row: hash_position(runs.queries[row], CALIBRATE),
    ):
        first.setdefault(runs.groups[row], row)
    calibrates = np.zeros(len(answerable), dtype=bool)
    calibrates[[*first.values()]] = True
    return ThresholdQueries(runs, answerable, calibrates)


def split_to_choose(queries: ThresholdQueries) -> QuerySplit:
    """The half of the queries that chooses a signal, and the half that calibrates it."""
    kinds = [str(each) for each in queries.answerable]
    return hashed_split(queries.runs.groups, kinds, split_seed=CHOOSE)


def hold_out_queries(
    queries: ThresholdQueries, held_out: Collection[str], *, split_seed: str, share: float
) -> BoolArray:
    """(Q,): the queries that a tuning run holds out, those without an answer by hash.

    Args:
        queries: The queries.
        held_out: Ids of the answerable ones; one of another kind goes with those of its group.
        split_seed: Of the hash.
        share: That is held out.
    """
    runs = queries.runs
    pairs = [*zip(runs.queries, runs.groups, queries.answerable.tolist(), strict=True)]
    sides = {group: query in held_out for query, group, is_answerable in pairs if is_answerable}
    places = (sides.get(group, hash_position(group, split_seed) < share) for group in runs.groups)
    return np.array([*places], dtype=bool)


def digest_queries(queries: ThresholdQueries, part: BoolArray) -> str:
    """SHA-256 of the ids of the unanswerable queries that calibrate a threshold.

    Args:
        queries: The queries.
        part: Shape (Q,): those that take part.
    """
    ids = sorted(queries.runs.queries[q] for q in np.flatnonzero(queries.calibrates & part))
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def calibration_digests(queries: ThresholdQueries, experiment: Experiment) -> set[str]:
    """The digests that are stored if these queries set a threshold: all of them, or a part.

    Args:
        queries: The queries.
        experiment: Whose settings of ``tune`` split them.
    """
    tune = experiment.tune or TuneSettings(system=experiment.baseline)
    held_out = hold_out_queries(queries, (), split_seed=tune.split_seed, share=tune.held_out)
    parts = [np.ones(len(queries.answerable), dtype=bool), held_out]
    if len(set(queries.runs.groups)) > 1:
        parts.append(split_to_choose(queries).held_out)
    return {digest_queries(queries, part) for part in parts}


def _share(counted: BoolArray) -> float | None:
    return float(counted.mean()) if len(counted) else None


def measure_abstentions(task: EvaluationSet) -> dict[str, AbstainResult]:
    """The shares of queries that each system with a threshold answers, by its name.

    Args:
        task: The evaluated queries; those without judgments are looked up.

    Raises:
        DataError: A query that is declared to have no answer has a relevant document.
        UnknownNameError: A system has no such signal on these lists.
    """
    systems = {
        name: (system, system.abstain)
        for name, system in task.experiment.systems.items()
        if system.abstain is not None and system.abstain.above is not None
    }
    if not systems:
        return {}
    queries = find_queries(add_unjudged_queries(task))
    digests = calibration_digests(queries, task.experiment)
    results = {}
    for name, (system, abstain) in systems.items():
        values = signal_of(task.fit_system(system), queries.runs, abstain.signal)
        above = abstain.find_threshold(name)
        answered = values > above  # NaN is not
        different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        is_common = values == different[counts.argmax()] if len(different) else values > above
        answerable, unanswerable = (
            measure_share(
                answered[kind],
                [queries.runs.groups[q] for q in np.flatnonzero(kind)],
                seed=task.experiment.seed,
            )
            for kind in (queries.answerable, ~queries.answerable)
        )
        results[name] = AbstainResult(
            signal=abstain.signal,
            above=above,
            answered=answerable,
            false_answers=unanswerable,
            is_calibrated_here=abstain.calibrated_on in digests,
            values=len(different),
            answerable_at_one=_share(is_common[queries.answerable]),
            unanswerable_at_one=_share(is_common[~queries.answerable]),
        )
    return results

"""Which queries have an answer, and which of them a system answers that abstains."""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray
from fusion_bench.data.query_splits import QuerySplit, hash_position, hashed_split
from fusion_bench.errors import DataError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, add_unjudged_queries
from fusion_bench.evaluation.report_records import AbstainResult
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.io.fingerprints import query_digests
from fusion_bench.io.looks import find_query_set
from fusion_bench.measures.rankings import no_relevant
from fusion_bench.ranking.query_signals import mask_half, signal_of
from fusion_bench.stats.thresholds import Share, measure_share
from fusion_bench.util.digests import hash_values

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

    def list_ids(self, mask: BoolArray) -> list[str]:
        """The ids of the marked queries."""
        return [*compress(self.runs.queries, mask.tolist())]

    def list_groups(self, mask: BoolArray) -> list[str]:
        """The group of each marked query."""
        return [*compress(self.runs.groups, mask.tolist())]

    def measure_share(self, counted: BoolArray, mask: BoolArray, seed: int) -> Share:
        """The share of the marked queries that count, with an interval that respects groups."""
        return measure_share(counted[mask], self.list_groups(mask), seed=seed)


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
    return ThresholdQueries(runs, answerable, choose_one_each(runs, ~answerable))


def choose_one_each(runs: AlignedRuns, mask: BoolArray) -> BoolArray:
    """(Q,): of the marked queries one a group, by hash: they are independent of each other."""
    first: dict[str, int] = {}
    rows = np.flatnonzero(mask).tolist()
    for row in sorted(rows, key=lambda row: hash_position(runs.queries[row], CALIBRATE)):
        first.setdefault(runs.groups[row], row)
    chosen = np.zeros(len(mask), dtype=bool)
    chosen[[*first.values()]] = True
    return chosen


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


def count_calibrating(
    task: EvaluationSet, queries: ThresholdQueries, calibrated_on: str | None
) -> int:
    """How many of the unanswerable queries set a threshold.

    If the ledger of the dataset does not have the queries that set it, these are recognized only if
    they are all of the queries at hand, or a half that a command would choose.

    Args:
        task: Has the dataset, and the settings of ``tune``, which split the queries.
        queries: The queries.
        calibrated_on: Digest of those that set the threshold; None = not known.
    """
    if calibrated_on is None:
        return 0
    if known := find_query_set(task.dataset.folder, calibrated_on):
        return len(known.intersection(query_digests(queries.list_ids(~queries.answerable))))
    tune = task.experiment.tune or TuneSettings(system=task.experiment.baseline)
    held_out = hold_out_queries(queries, (), split_seed=tune.split_seed, share=tune.held_out)
    parts = [np.ones(len(queries.answerable), dtype=bool), held_out]
    if len(set(queries.runs.groups)) > 1:
        parts.append(split_to_choose(queries).held_out)
    sets = [query_digests(queries.list_ids(queries.calibrates & part)) for part in parts]
    return max((len(each) for each in sets if hash_values(each) == calibrated_on), default=0)


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
    results, seed = {}, task.experiment.seed
    for name, (system, abstain) in systems.items():
        values = signal_of(task.fit_system(system), queries.runs, abstain.signal)
        above = abstain.find_threshold(name)
        answered = values > above  # NaN is not
        different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        is_common = values == different[counts.argmax()] if len(different) else values > above
        results[name] = AbstainResult(
            signal=abstain.signal,
            above=above,
            answered=queries.measure_share(answered, queries.answerable, seed),
            false_answers=queries.measure_share(answered, ~queries.answerable, seed),
            is_calibrated_here=count_calibrating(task, queries, abstain.calibrated_on) > 0,
            values=len(different),
            answerable_at_one=_share(is_common[queries.answerable]),
            unanswerable_at_one=_share(is_common[~queries.answerable]),
        )
    return results

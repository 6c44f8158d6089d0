"""The queries that lists answer, and that are left out because nobody judged any document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.io.dataset import Dataset
from fusion_bench.util.formatting import pluralize

#: Key of the warning.
IGNORED_QUERIES: Final = "queries without judgments"


def find_ignored_queries(task: EvaluationSet) -> frozenset[str]:
    """The answered queries of the evaluated split and fields that have no judgment.

    Args:
        task: The evaluated queries, and the lists.
    """
    unjudged = _find_unjudged(task.dataset)
    return frozenset(query for query in unjudged if _is_selected(task, query))


def count_known_ignored(task: EvaluationSet) -> int:
    """How many of them the dataset's own queries file names; of a larger list alone, none."""
    if task.dataset.spec.queries is None:
        return 0
    return len(find_ignored_queries(task) & task.dataset.queries.keys())


def count_known_unjudged(dataset: Dataset) -> int:
    """The same of a whole dataset, of any split."""
    if dataset.spec.queries is None:
        return 0
    return len(_find_unjudged(dataset) & dataset.queries.keys())


def warn_ignored(count: int, evaluated: int) -> Iterator[DataWarning]:
    """The warning of a report; nothing where no query is left out.

    Args:
        count: Queries of the queries file that lists answer and nobody judged.
        evaluated: Queries that the numbers describe.
    """
    if count:
        verb, they = ("has", "it is") if count == 1 else ("have", "they are")
        yield DataWarning(
            key=IGNORED_QUERIES,
            text=(
                f"{pluralize(count, 'query')} of the queries file {verb} no judgment, so {they} "
                f"left out. The numbers describe {pluralize(evaluated, 'query')} of "
                f"{count + evaluated:,}. To judge more: fusion-bench judge."
            ),
        )


def _find_unjudged(dataset: Dataset) -> set[str]:
    """The queries that a list of any trial answers, and that have no judgment."""
    answered = {query for trial in dataset.trials for query in _answered_queries(trial)}
    return answered - set(dataset.qrels.queries)


def _answered_queries(dataset: Dataset) -> Iterator[str]:
    for run in dataset.runs.values():
        sizes = np.diff(run.offsets).tolist()
        yield from (query for query, size in zip(run.queries, sizes, strict=True) if size)


def _is_selected(task: EvaluationSet, query: str) -> bool:
    """Whether the query, if it were judged, would be among the evaluated ones."""
    conditions = [*task.experiment.query_filters.items()]
    if task.split is not None:
        conditions.append(("split", (task.split,)))
    if not conditions:
        return True
    record = task.dataset.queries.get(query)
    return record is not None and all(record.value_of(n) in allowed for n, allowed in conditions)

"""The warnings of the lists that compared systems of finished reports read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fusion_bench.evaluation.dataset_checks.data_warnings import find_data_warnings
from fusion_bench.evaluation.dataset_checks.judged_grades import find_grade_warnings
from fusion_bench.evaluation.dataset_checks.near_duplicates import warn_near_duplicates
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.evaluation.synthetic_queries import warn_synthetic
from fusion_bench.evaluation.trials.compared_trials import warn_single_trial


def find_compared_warnings(
    left: Collection,
    right: Collection,
    sides: tuple[Sequence[SystemResult], Sequence[SystemResult]],
    *,
    two: bool,
) -> tuple[DataWarning, ...]:
    """What speaks against the lists of compared systems, as ``eval`` has it.

    Args:
        left: The collection in the baseline's report.
        right: The same in the candidates' report.
        sides: The baseline's rows, and the candidates'.
        two: Whether these are two reports.

    Returns:
        Of two reports, a warning of only one of them names it.
    """
    if not two:
        return tuple(_find_warnings(left, [*sides[0], *sides[1]]))
    baseline, candidates = sides
    first = (*_find_warnings(left, baseline), *_find_single_trials(baseline, candidates))
    second = (*_find_warnings(right, candidates), *_find_single_trials(candidates, baseline))
    return (
        *(each for each in first if each in second),
        *(_name_report("first", each) for each in first if each not in second),
        *(_name_report("second", each) for each in second if each not in first),
    )


def _find_warnings(collection: Collection, rows: Sequence[SystemResult]) -> Iterator[DataWarning]:
    """The warnings of the lists that these systems read, and of the queries."""
    configs = {row.name: row.config or {} for row in rows}
    names = {name for config in configs.values() for name in _list_texts(config)}
    runs = [info for info in collection.runs if info.name in names]
    queries = len(collection.queries)
    judge = collection.judge
    if judge is not None:
        related = tuple(name for name in judge.related_systems if name in configs)
        judge = judge.model_copy(update={"related_systems": related})
    yield from find_judge_warnings(judge, runs)
    yield from find_grade_warnings(
        collection.grades, collection.binary_relevance, is_machine=judge is not None
    )
    yield from warn_synthetic(collection.synthetic_queries)
    yield from find_data_warnings(runs, queries, configs, collection.measures)
    yield from warn_near_duplicates(collection.near_duplicates)


def _find_single_trials(
    rows: Sequence[SystemResult], others: Sequence[SystemResult]
) -> Iterator[DataWarning]:
    for row in rows:
        yield from warn_single_trial(row, _list_texts(row.config or {}), others)


def _list_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    """Every text in a configuration; names of lists are among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(each)


def _name_report(name: str, warning: DataWarning) -> DataWarning:
    return DataWarning(key=warning.key, text=f"In the {name} report: {warning.text}")

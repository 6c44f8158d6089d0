"""Grades that cannot tell systems apart: none is relevant, or a machine gave one alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.report_records.data_warning import DataWarning


def list_grades(qrels: Qrels, queries: Collection[str]) -> tuple[int, ...]:
    """The different grades of the judged documents of some queries, in ascending order.

    Args:
        qrels: The judgments.
        queries: Ids of the queries.
    """
    chosen = set(queries)
    is_chosen = np.array([query in chosen for query in qrels.queries], dtype=bool)
    grades = qrels.grades[np.repeat(is_chosen, np.diff(qrels.offsets))]
    return tuple(np.unique(grades).tolist())


def find_grade_warnings(
    grades: Sequence[int], binary_relevance: int, *, is_machine: bool
) -> Iterator[DataWarning]:
    """What makes the values of all systems alike.

    People's files often list relevant documents alone. So one grade is remarkable only where a
    machine graded, which was asked about other documents, too.

    Args:
        grades: The different grades of the evaluated queries, in ascending order; empty = not
            known.
        binary_relevance: The grade from which a document is relevant.
        is_machine: Whether a machine gave the grades.
    """
    if not grades:
        return
    if grades[-1] < binary_relevance:
        text = (
            f"No document of the evaluated queries is relevant from grade {binary_relevance}: RR "
            f"and R are 0 for every system. The highest grade is {grades[-1]}: check "
            "'binary_relevance' of dataset.yaml, and the grades."
        )
        yield DataWarning(key="nothing relevant", text=text)
    if len(grades) == 1 and is_machine:
        text = (
            f"The machine judge gave all judged documents of the evaluated queries grade "
            f"{grades[0]}: such grades tell no document from another."
        )
        yield DataWarning(key="one grade", text=text)

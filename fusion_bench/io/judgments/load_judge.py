"""The grades of one judge, on the scale of the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError, UnknownNameError
from fusion_bench.io.load_records import load_qrels

if TYPE_CHECKING:
    from fusion_bench.io.dataset import Dataset


def load_judge(dataset: Dataset, name: str) -> Qrels:
    """The grades of a judge that ``judges`` of the ``dataset.yaml`` names.

    Args:
        dataset: The dataset.
        name: The judge; ``qrels`` = the judgments themselves, unless a judge has that name.

    Raises:
        UnknownNameError: There is no such judge.
        DataError: The file breaks a rule, or holds a grade that ``map`` does not name.
    """
    spec = dataset.spec.judges.get(name)
    if spec is None:
        if name == "qrels":
            return dataset.qrels
        raise UnknownNameError(
            "judge", name, [*dataset.spec.judges, "qrels"], where=f"{dataset.name}: judges"
        )
    file = dataset.files[f"judges/{name}"]
    grades = load_qrels(file.path, layout=file.layout)
    return grades if spec.map is None else _map_grades(grades, spec.map, f"{file.path}")


def _map_grades(qrels: Qrels, grades: Mapping[int, int], where: str) -> Qrels:
    """The same judgments with each grade replaced.

    Raises:
        DataError: A grade has no replacement.
    """
    mapped = np.empty_like(qrels.grades)
    for grade in np.unique(qrels.grades).tolist():
        if grade not in grades:
            known = ", ".join(map(str, sorted(grades)))
            raise DataError(
                f"{where}: grade {grade} is not in 'map' of this judge (it has {known}): add it"
            )
        mapped[qrels.grades == grade] = grades[grade]
    return replace(qrels, grades=mapped)

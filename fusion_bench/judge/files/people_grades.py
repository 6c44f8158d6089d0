"""What people graded, whether or not the ``dataset.yaml`` names their files."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import FusionBenchError, UnknownNameError
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.judgments.load_judge import load_judge
from fusion_bench.io.load_records import load_qrels
from fusion_bench.judge.files.judge_file import judge_files


def find_named_files(path: Path, spec: DatasetSpec) -> set[Path]:
    """The files of grades that the ``dataset.yaml`` names, resolved.

    Args:
        path: The ``dataset.yaml``.
        spec: What it says.
    """
    files = [*spec.judges.values(), *([] if spec.qrels is None else [spec.qrels])]
    return {(path.parent / each.path).resolve() for each in files}


def list_unnamed_files(path: Path, spec: DatasetSpec) -> dict[str, Path]:
    """Files of ``judgments/`` with grades that the ``dataset.yaml`` does not name, by judge.

    Args:
        path: The ``dataset.yaml``.
        spec: What it says.
    """
    named = find_named_files(path, spec)
    return {
        name: file
        for name, file in judge_files(path).items()
        if file.resolve() not in named and _holds_grades(file)
    }


def load_people(path: Path, dataset: Dataset) -> list[Qrels]:
    """The grades of every person: judgments, judges of kind ``human``, and unnamed files.

    Args:
        path: The ``dataset.yaml``.
        dataset: The same, read.
    """
    spec = dataset.spec
    names = [name for name, judge in spec.judges.items() if judge.kind == "human"]
    if spec.qrels is not None and spec.qrels.kind == "human":
        names.append("qrels")
    unnamed = list_unnamed_files(path, spec).values()
    return [load_judge(dataset, name) for name in names] + [load_qrels(file) for file in unnamed]


def load_person(path: Path, dataset: Dataset, name: str) -> Qrels:
    """The grades of one person.

    Args:
        path: The ``dataset.yaml``.
        dataset: The same, read.
        name: A judge that it names, ``qrels``, or a person who has a file in ``judgments/``.

    Raises:
        UnknownNameError: There is no such judge.
    """
    spec, unnamed = dataset.spec, list_unnamed_files(path, dataset.spec)
    known = [*spec.judges, *(() if spec.qrels is None else ("qrels",))]
    if name in known:
        return load_judge(dataset, name)
    if name in unnamed:
        return load_qrels(unnamed[name])
    raise UnknownNameError(
        "judge",
        name,
        [*known, *unnamed],
        where=f"{dataset.name}: judges",
        remedy=f"name the file of grades under 'judges' of {path}",
    )


def _holds_grades(path: Path) -> bool:
    """Whether grades can be read there."""
    try:
        return load_qrels(path).grades.size > 0
    except FusionBenchError:  # a spreadsheet to fill in, or a file without a line yet
        return False

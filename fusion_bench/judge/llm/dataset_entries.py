"""What to add to a ``dataset.yaml`` so that the grades of models and people are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.judge.files.judge_file import FOLDER
from fusion_bench.judge.files.people_grades import find_named_files, list_unnamed_files
from fusion_bench.judge.llm.run import WrittenGrades
from fusion_bench.util.yaml_text import format_compact_yaml


def list_new_entries(
    spec: DatasetSpec, path: Path, written: Sequence[WrittenGrades]
) -> tuple[dict[str, Any] | None, dict[str, dict[str, Any]]]:
    """The files of grades that the ``dataset.yaml`` does not name yet.

    Where it has no ``qrels``, the first model's grades take that place, and the files of people
    become judges: agreement is measured between both. People's files are also named where the
    judgments are a model's; judgments of people may have been made of these very files.

    Args:
        spec: What the ``dataset.yaml`` says.
        path: The ``dataset.yaml``.
        written: The grades of each model.

    Returns:
        The value of ``qrels``, None = it stays as it is; and the new judges by name.
    """
    known = find_named_files(path, spec)
    new = [(each.meta.judge, each.entry) for each in written if each.path.resolve() not in known]
    qrels = new.pop(0)[1] if spec.qrels is None and new else None
    if spec.qrels is None or spec.is_judged_by_machine:
        new += [
            (name, {"path": f"{FOLDER}/{file.name}", "kind": "human"})
            for name, file in list_unnamed_files(path, spec).items()
        ]
    judges: dict[str, dict[str, Any]] = {}
    for name, entry in new:
        free = name
        while free in judges or free in spec.judges or free == "qrels":
            free += f"-{entry['kind']}"
        judges[free] = entry
    return qrels, judges


def format_new_entries(
    spec: DatasetSpec, qrels: Mapping[str, Any] | None, judges: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Lines to paste into the ``dataset.yaml``, after a line that says where."""
    lines = [] if qrels is None else ["add to dataset.yaml:", *_format_lines({"qrels": qrels})]
    if judges and spec.judges:
        lines.append("add below 'judges' of dataset.yaml:")
        lines += [f"  {line}" for line in _format_lines(judges)]
    elif judges:
        lines += [] if lines else ["add to dataset.yaml:"]
        lines += _format_lines({"judges": judges})
    return lines


def _format_lines(data: Mapping[str, Any]) -> list[str]:
    return format_compact_yaml(data).splitlines()

"""What the whole command answered where the right answer is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.gate.self_test.whole_command.project import NAME

#: A printed number may differ from the right one by this much.
TOLERANCE = 1e-9

#: The checks of a ``gate.json``.
Checks: TypeAlias = Sequence[Mapping[str, Any]]


class CaseOutcome(StoredRecord):
    """One case.

    Attributes:
        name: What was tried.
        statuses: Of every check, in the order of the checks.
        exit_code: Of the command.
        faults: What was wrong; empty = all as it must be.
    """

    name: str
    statuses: tuple[str, ...]
    exit_code: int
    faults: tuple[str, ...]


def judge_command(
    name: str, folder: Path, code: int, find_faults: Callable[[Checks], Iterable[str]]
) -> CaseOutcome:
    """The outcome of a gate command that has run in a project's folder.

    Args:
        name: What was tried.
        folder: Of the project.
        code: The exit code.
        find_faults: What is wrong with the checks, and with the exit code.
    """
    path = folder / "reports" / NAME / "gate.json"
    if not path.is_file():
        fault = f"no verdict was written; exit code {code}"
        return CaseOutcome(name=name, statuses=(), exit_code=code, faults=(fault,))
    checks: Checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    statuses = tuple(check["status"] for check in checks)
    return CaseOutcome(
        name=name, statuses=statuses, exit_code=code, faults=tuple(find_faults(checks))
    )

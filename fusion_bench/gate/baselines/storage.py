"""The file of a baseline: its place, how it is read and written, and how to renew it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import join

from fusion_bench.config.files.json_records import read_stored
from fusion_bench.errors import DataError
from fusion_bench.gate.baselines.consistency import find_inconsistencies
from fusion_bench.gate.baselines.record import Baseline
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.files.output_folder import name_experiment
from fusion_bench.util.files.regular_files import read_regular_text

_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def baseline_path(experiment: Path) -> Path:
    """The default file of an experiment's baseline: ``reports/baselines/NAME.json``."""
    return Path("reports", "baselines", f"{name_experiment(experiment)}.json")


def update_command(
    experiment: Path, baseline: Path, datasets: Sequence[Path] = (), *, anchor: bool = False
) -> str:
    """The command that writes a baseline.

    Args:
        experiment: The experiment's file.
        baseline: The baseline's file.
        datasets: Folders of named datasets.
        anchor: Whether the values become the anchor, too.
    """
    words = gate_command(experiment, baseline, datasets)
    return f'{words} --{"anchor" if anchor else "update"} --reason "…"'


def gate_command(experiment: Path, baseline: Path, datasets: Sequence[Path] = ()) -> str:
    """The command that checks an experiment; see :func:`update_command`."""
    options: list[object] = [word for folder in datasets for word in ("--datasets", folder)]
    if baseline != baseline_path(experiment):
        options += ["--baseline", baseline]
    return join(str(word) for word in ("fusion-bench", "gate", experiment, *options))


def read_baseline(path: Path, experiment: Path | None = None) -> Baseline | None:
    """Read a baseline; None where there is no such file.

    Args:
        path: The file.
        experiment: Its experiment, for the command in an error.

    Raises:
        DataError: Not a baseline, of another format version, edited by hand, or inconsistent.
    """
    is_older = is_older_format(path)
    command = update_command(experiment or Path("EXPERIMENT"), path, anchor=is_older)
    remedy = f"{'' if is_older else 'move it away and '}write a new one: {command}"
    if not path.exists():
        return None
    baseline = read_stored(path, Baseline, what="baseline", remedy=remedy)
    if baseline != baseline.with_checksum():
        raise DataError(
            f"{path}: edited since it was written (its checksum does not match): restore it, or "
            f"{remedy}"
        )
    problem = next(find_inconsistencies(baseline), None)
    if problem is not None:
        raise DataError(f"{path}: {problem}: restore it, or {remedy}")
    return baseline


def is_older_format(path: Path) -> bool:
    """Whether a file is a baseline that an earlier version wrote."""
    try:
        data = json.loads(read_regular_text(path))
    except (OSError, ValueError, RecursionError):
        return False
    fields = Baseline.model_fields
    if not isinstance(data, dict) or data.get("format") != fields["format"].default:
        return False
    version = data.get("format_version")
    return isinstance(version, int) and version < fields["format_version"].default


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline with its checksum.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    text = _format_json(baseline.with_checksum().stored_data)
    write_atomic(path, f"{text}\n".encode())


def _format_json(value: object, indent: int = 0) -> str:
    """JSON with each list of plain values on one line, so that a diff stays readable.

    Floats are written as the shortest text that reads back as the same float.
    """
    entries: list[str] = []
    if isinstance(value, dict):
        entries = [
            f"{_encode_json(key)}: {_format_json(item, indent + 1)}" for key, item in value.items()
        ]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        entries = [_format_json(item, indent + 1) for item in value]
    if not entries:
        return _encode_json(value)
    brackets = "{}" if isinstance(value, dict) else "[]"
    inner = f",\n{' ' * (indent + 1)}".join(entries)
    return f"{brackets[0]}\n{' ' * (indent + 1)}{inner}\n{' ' * indent}{brackets[1]}"

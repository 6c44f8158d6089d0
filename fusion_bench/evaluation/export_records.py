"""What ``fusion-bench export --json`` prints.

Format history:
    1   first version
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from fusion_bench.config.json_records import ReportRecord
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records import ComparisonResult
from fusion_bench.experiment.dialect import Fidelity
from fusion_bench.io.outputs import check_output, write_output
from fusion_bench.util.files import read_regular, require_folder


def write_files(files: Mapping[str, str], folder: Path, *, force: bool = False) -> list[Path]:
    """Write files into a folder; all are checked before the first is written.

    Args:
        files: Name → text.
        folder: Where to; created if missing.
        force: Replace files that are there and differ.

    Returns:
        Their paths.

    Raises:
        ConfigError: A file is there, or a name leads out of the folder.
        FusionBenchError: The folder cannot be written to.
    """
    contents = {}
    for name, text in files.items():
        parts = PurePosixPath(name).parts  # a dialect of somebody else may call it anything
        if not parts or ".." in parts or "\\" in name or PurePosixPath(name).is_absolute():
            raise ConfigError(
                f"file {name!r} lies outside the folder: the dialect has to rename it"
            )
        contents[folder.joinpath(*parts)] = text.encode()
    for path, data in contents.items():
        require_folder(path.parent)
        if path.is_dir():
            raise ConfigError(f"--out {folder}: {path} is a folder: choose another")
        if not force and path.exists() and read_regular(path) != data:
            raise ConfigError(
                f"--out {folder}: {path} is there and differs: choose another folder, or add "
                "--force to replace it"
            )
        check_output(path)
    return [write_output(path, data) for path, data in contents.items()]


class ReplayRecord(ReportRecord):
    """The system that was written, replayed on a dataset beside your own system.

    Attributes:
        dataset: Name of the dataset.
        fingerprint: SHA-256 over what was read of it.
        split: The split that was replayed; null = all judged queries.
        query_type: The type of query; null = all.
        where: Field of the queries → the values that they have; empty = all.
        queries: Number of queries.
        groups: Number of groups, the units of the interval.
        alpha: 1 − coverage of the interval.
        min_gain: A smaller difference is not worth a change.
        system_mean: Mean of the primary measure, of the system.
        export_mean: The same of what was written.
        comparison: What was written against the system, paired by query.
        top: So many documents at the top of each list are compared.
        changed_queries: Queries whose top differs, ties of equal scores apart; of lists with
            several trials in the first.
        changed_sets: Those of them whose top has other documents.
        tied_queries: Queries whose top differs only among documents whose scores are equal in the
            engine's precision.
    """

    dataset: str
    fingerprint: str
    split: str | None
    query_type: str | None
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    queries: int
    groups: int
    alpha: float
    min_gain: float = 0.005
    system_mean: float
    export_mean: float
    comparison: ComparisonResult
    top: int
    changed_queries: int
    changed_sets: int
    tied_queries: int


class ExportReport(ReportRecord):
    """One system as one engine's configuration.

    Attributes:
        format: Always ``fusion-bench-export``.
        format_version: See the history in this module.
        name: The experiment.
        system: Name of the system.
        query_type: The query type whose numbers were taken; null = the system has none, or all.
        intent: The intent whose numbers were taken; null = the system has none, or all.
        engine: Name of the dialect.
        title: The engine's name.
        version: The version whose formula was translated to.
        source: Where that formula is documented.
        precision: In which the engine compares scores.
        fidelity: How well the engine can do what the system does.
        reasons: What is lost and why, and what to know.
        notes: What else to do, such as where a file goes.
        config: The nearest system of the dialect; null where it is unsupported.
        files: Name → text of each file; empty where it is unsupported.
        replays: One a dataset that it was replayed on.
        not_replayed: Why it was not; null = it was.
    """

    format: Literal["fusion-bench-export"] = "fusion-bench-export"
    format_version: Annotated[int, Field(ge=1)] = 1
    name: str
    system: str
    query_type: str | None
    intent: str | None = None
    engine: str
    title: str
    version: str
    source: str
    precision: Literal["float32", "float64"]
    fidelity: Fidelity
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    config: dict[str, Any] | None
    files: dict[str, str]
    replays: tuple[ReplayRecord, ...]
    not_replayed: str | None

    def write(self, folder: str | Path, *, force: bool = False) -> list[Path]:
        """Write the files.

        Args:
            folder: Where to; created if missing.
            force: Replace files that are there and differ.

        Raises:
            ConfigError: A file is there.
            FusionBenchError: The folder cannot be written to.
        """
        return write_files(self.files, Path(folder), force=force)

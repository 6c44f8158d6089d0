"""The candidates that were checked since the last update of a baseline.

With ``candidates: {max: R}`` each of up to R different candidates is checked at α/R, so that a
false alarm or a false pass among all of them has a probability of at most α. One line a candidate
stands in ``NAME.candidates.jsonl`` beside the baseline. Checking the same values again is no new
candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.gate.baselines.record import Baseline, digest_json
from fusion_bench.util.files.atomic_files import append_whole
from fusion_bench.util.files.folder_lock import lock_folder
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.os_errors import explain_error


class CheckedCandidate(StoredRecord):
    """One line of the file.

    Attributes:
        baseline: Checksum of the baseline that it was compared with.
        candidate: SHA-256 of its values.
        system: Its name.
        checked_at: UTC, ISO 8601.
    """

    baseline: str
    candidate: str
    system: str
    checked_at: str


def candidates_path(baseline: Path) -> Path:
    """The file beside a baseline."""
    return baseline.with_name(f"{baseline.stem}.candidates.jsonl")


def digest_values(values: Mapping[str, Mapping[str, FloatArray]]) -> str:
    """SHA-256 of a candidate's values by collection and measure; NaN has its own text."""
    return digest_json(
        {
            name: {measure: list(map(repr, row.tolist())) for measure, row in rows.items()}
            for name, rows in values.items()
        }
    )


def read_candidates(path: Path) -> list[CheckedCandidate]:
    """The lines of the file; none where there is no such file.

    Raises:
        DataError: A line is no candidate.
    """
    try:
        lines = read_regular_text(path).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {explain_error(error)}") from None
    try:
        return [CheckedCandidate.model_validate_json(line) for line in lines if line.strip()]
    except ValidationError:
        raise DataError(
            f"{path}: not a list of checked candidates: restore it, or candidates are miscounted"
        ) from None


def count_candidate(
    path: Path, baseline: Baseline, candidate: str, *, system: str, checked_at: str, limit: int
) -> int:
    """The number of a candidate, from 1, among those checked against a baseline.

    A new one is added to the file, unless it exceeds ``limit``. Gates at the same time wait for
    each other, so that no two candidates have one number.

    Raises:
        DataError: A line of the file is no candidate.
        FusionBenchError: The file cannot be written.
    """
    line = CheckedCandidate(
        baseline=baseline.checksum, candidate=candidate, system=system, checked_at=checked_at
    )
    with lock_folder(path.parent):
        listed = [c.candidate for c in read_candidates(path) if c.baseline == baseline.checksum]
        if candidate in listed:
            return listed.index(candidate) + 1
        number = len(listed) + 1
        if number <= limit:
            append_whole(path, f"{line.model_dump_json()}\n".encode())
    return number

"""The candidates that were checked since the last update of a baseline.

With ``candidates: {max: R}`` each of up to R different candidates is checked at α/R, so that a
false alarm or a false pass among all of them has a probability of at most α. One line a candidate
stands in ``NAME.candidates.jsonl`` beside the baseline. Checking the same values again is no new
candidate. An update adds a line, too, which the new baseline names: so a ledger that was deleted or
cut before that line is missed. Each line names the one before it, see ``util.chained_lines``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.gate.baselines.record import LedgerLine, digest_json
from fusion_bench.util.chained_lines import digest_line, find_gap, follow_lines
from fusion_bench.util.files.atomic_files import append_whole
from fusion_bench.util.files.folder_lock import lock_folder
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.os_errors import explain_error


class CheckedCandidate(StoredRecord):
    """One line of the file.

    Attributes:
        baseline: Checksum of the baseline that it was compared with; empty = it became one.
        candidate: SHA-256 of its values.
        system: Its name.
        checked_at: UTC, ISO 8601.
        line: Its number in the file; None = an earlier version wrote it.
        previous: Digests of the lines that it follows.
    """

    baseline: str
    candidate: str
    system: str
    checked_at: str
    line: int | None = None
    previous: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Of all that it holds."""
        return digest_line(self.model_dump_json())

    @property
    def place(self) -> LedgerLine:
        """What a record keeps that relies on the line."""
        return LedgerLine(line=self.line or 0, digest=self.digest)


def candidates_path(baseline: Path) -> Path:
    """The file beside a baseline."""
    return baseline.with_name(f"{baseline.stem}.candidates.jsonl")


def make_candidate(
    values: Mapping[str, Mapping[str, FloatArray]], system: str, baseline: str = ""
) -> CheckedCandidate:
    """A candidate of now.

    Args:
        values: By collection and measure; NaN has its own text.
        system: Its name.
        baseline: Checksum of what it is compared with; empty = it becomes the baseline.
    """
    texts = {
        name: {measure: list(map(repr, row.tolist())) for measure, row in rows.items()}
        for name, rows in values.items()
    }
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return CheckedCandidate(
        baseline=baseline, candidate=digest_json(texts), system=system, checked_at=now
    )


def read_candidates(path: Path) -> list[CheckedCandidate]:
    """The lines of the file; none where there is no such file.

    Raises:
        DataError: A line is no candidate, or follows one that is not there.
    """
    try:
        return parse_candidates(read_regular_text(path), path)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {explain_error(error)}") from None


def parse_candidates(text: str, path: Path) -> list[CheckedCandidate]:
    """The lines of the text of the file at ``path``; raises as :func:`read_candidates`."""
    remedy = "restore it, or candidates are miscounted"
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        candidates = [CheckedCandidate.model_validate_json(line) for line in lines]
    except ValidationError:
        raise DataError(f"{path}: not a list of checked candidates: {remedy}") from None
    gap = find_gap(candidates)
    if gap is not None:
        raise DataError(
            f"{path}: candidate {gap + 1} follows a line that was removed or edited: {remedy}"
        )
    return candidates


def count_candidate(
    path: Path, tried: CheckedCandidate, *, limit: int, needed: Iterable[LedgerLine]
) -> tuple[int, LedgerLine | None]:
    """The number of a candidate, from 1, among those checked against a baseline, and its line.

    A new one is added to the file, unless it exceeds ``limit``: then it has no line. Gates at the
    same time wait for each other, so that no two candidates have one number.

    Args:
        path: The file.
        tried: The candidate.
        limit: So many are allowed.
        needed: Lines that the file must have.

    Raises:
        DataError: A line of the file is no candidate, or one is missing.
        FusionBenchError: The file cannot be written.
    """
    with lock_folder(path.parent):
        ledger = read_candidates(path)
        known = {line.digest for line in ledger}
        lost = next((line for line in needed if line.digest not in known), None)
        if lost is not None:
            raise DataError(
                f"{path}: line {lost.line}, on which the baseline relies, is missing: restore the "
                "file, or candidates are miscounted; --update --reason begins a new count"
            )
        listed = [line for line in ledger if line.baseline == tried.baseline]
        for number, line in enumerate(listed, 1):
            if line.candidate == tried.candidate:
                return number, line.place
        is_allowed = len(listed) < limit
        return len(listed) + 1, append_candidate(path, tried, ledger) if is_allowed else None


def append_candidate(
    path: Path, tried: CheckedCandidate, ledger: Sequence[CheckedCandidate]
) -> LedgerLine:
    """Add a candidate to the lines of a file, whose folder the caller has locked."""
    line = tried.model_copy(update=follow_lines(ledger))
    append_whole(path, f"{line.model_dump_json()}\n".encode())
    return line.place

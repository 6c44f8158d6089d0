"""What the baseline was at the commit that a change starts from."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from fusion_bench.gate.baselines.candidates import (
    CheckedCandidate,
    candidates_path,
    parse_candidates,
)
from fusion_bench.gate.baselines.record import Baseline
from fusion_bench.util.files.git_files import read_committed


class BaseCommit(NamedTuple):
    """The commit, and the baseline there.

    Attributes:
        name: As given.
        is_same: Whether the file of the baseline is the same there, byte by byte.
        baseline: The baseline there; None = there is none that this version reads.
        candidates: The lines of the ledger of checked candidates there.
    """

    name: str
    is_same: bool
    baseline: Baseline | None
    candidates: tuple[CheckedCandidate, ...] = ()

    def refuse_older(self, baseline: Baseline) -> str | None:
        """Why a baseline does not follow that of the commit; None where it does, or none is there.

        An older baseline from the repository, or one written anew, lacks updates of its history.
        """
        if self.baseline is None:
            return None
        lost = [update.updated_at for update in self.baseline.history]
        kept = [update.updated_at for update in baseline.history]
        pairs = zip_longest(lost, kept[: len(lost)])
        first = next((before for before, now in pairs if before != now), None)
        if first is None:
            return None
        return (
            f"the baseline does not follow that of {self.name}: its history lacks the update of "
            f"{first}: restore it, and update it from there"
        )


def read_base(path: Path, commit: str) -> BaseCommit:
    """The baseline's file at a commit.

    Raises:
        ConfigError: git knows no such commit.
    """
    data = read_committed(path, commit)
    if data is None:
        return BaseCommit(commit, is_same=False, baseline=None)
    try:
        baseline = Baseline.model_validate_json(data)
    except ValidationError:
        baseline = None
    lines = read_committed(candidates_path(path), commit) or b""
    candidates = tuple(parse_candidates(lines.decode(errors="replace"), candidates_path(path)))
    return BaseCommit(commit, data == path.read_bytes(), baseline, candidates)

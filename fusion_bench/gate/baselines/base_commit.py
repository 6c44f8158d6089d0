"""What the baseline was at the commit that a change starts from."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from fusion_bench.gate.baselines.candidates import candidates_path, parse_candidates
from fusion_bench.gate.baselines.record import Baseline, LedgerLine
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
    candidates: tuple[LedgerLine, ...] = ()

    def refuse_other_history(self, baseline: Baseline) -> str | None:
        """Why a baseline does not follow that of the commit; None where it does, or none is there.

        An older baseline of the repository, or one written anew, lacks updates of its history; one
        that was edited has other contents without an update.
        """
        if self.baseline is None:
            return None
        old, new = (_list_updates(each) for each in (self.baseline, baseline))
        pairs = zip_longest(old, new[: len(old)])
        lost = next((before for before, now in pairs if before != now), None)
        if lost is not None:
            reason = f"its history lacks the update of {lost['updated_at']}"
        elif len(old) == len(new) and _differ(self.baseline, baseline):
            reason = "it differs without an update in its history"
        else:
            return None
        return (
            f"the baseline does not follow that of {self.name}: {reason}: restore it, and update "
            "it from there"
        )


def _differ(old: Baseline, new: Baseline) -> bool:
    """Whether anything differs that only an update changes."""
    is_blessed = new.history[-1].is_anchor
    return old.contents != new.contents or (old.anchor != new.anchor and not is_blessed)


def _list_updates(baseline: Baseline) -> list[dict[str, Any]]:
    """The history, without what may be added later: reasons, and whether it is the anchor."""
    parts = {"updated_at", "config_sha256", "means"}
    return [update.model_dump(include=parts) for update in baseline.history]


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
    file = candidates_path(path)
    lines = parse_candidates((read_committed(file, commit) or b"").decode(errors="replace"), file)
    candidates = tuple(line.place for line in lines)
    return BaseCommit(commit, data == path.read_bytes(), baseline, candidates)

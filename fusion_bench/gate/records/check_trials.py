"""The trials of a check, as a verdict keeps them."""

from __future__ import annotations

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.gate.verdict import CheckStatus
from fusion_bench.stats.trials.trial_variance import ENOUGH_TRIALS, FEW_TRIALS
from fusion_bench.util.formatting import format_number, pluralize


class CheckTrialsResult(StoredRecord):
    """How far the trials of the two sides of a check lie apart, and what single trials would say.

    Attributes:
        baseline: Trials of the reference.
        candidate: Trials of the candidate.
        baseline_sd: Sample standard deviation of the means of its trials; None with one.
        candidate_sd: Likewise.
        share: The part of the variance of the difference that trials of all queries together add;
            0 = the plain paired test of the means over trials is right.
        is_paired: Both sides read the same trials of a list, and each trial is compared with
            itself.
        is_borrowed: A side of one trial counts as unsteady as the other side.
        single: Status → pairs of single trials, one a side, that would end in it, where the check
            is decided from them alone.
    """

    baseline: int
    candidate: int
    baseline_sd: float | None
    candidate_sd: float | None
    share: float
    is_paired: bool
    is_borrowed: bool
    single: dict[CheckStatus, int]

    @property
    def one_can_tell(self) -> bool:
        """Whether every pair of single trials ends in one status."""
        return len(self.single) == 1

    @property
    def description(self) -> str:
        """The trials in words."""
        text = (
            f"trials: baseline {_describe_side(self.baseline, self.baseline_sd)}, candidate "
            f"{_describe_side(self.candidate, self.candidate_sd)}"
        )
        if self.is_borrowed:
            text += "; the side of one trial counts as unsteady as the other"
        if self.share > 0:
            text += f"; {100 * self.share:.0f} % of the variance comes from trials"
        if not {self.baseline, self.candidate}.isdisjoint(range(2, FEW_TRIALS + 1)):
            text += f"; {FEW_TRIALS} or fewer hardly tell their effect, {ENOUGH_TRIALS} are needed"
        pairs = pluralize(sum(self.single.values()), "pair")
        counts = ", ".join(f"{count} {status}" for status, count in self.single.items())
        if self.one_can_tell:
            return f"{text}; single trials agree ({pairs}: {counts})"
        return f"{text}; one trial cannot tell ({pairs} of single trials: {counts})"


def _describe_side(trials: int, sd: float | None) -> str:
    spread = "" if sd is None else f" (sd of their means {format_number(sd)})"
    return f"{trials}{spread}"

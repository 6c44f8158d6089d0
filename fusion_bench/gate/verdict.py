"""The decision on one check, as a pure function of numbers."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.stats.comparison import NOISE

CheckStatus: TypeAlias = Literal[
    "unchanged",
    "pass",
    "pass on these queries",
    "fell",
    "regressed",
    "unjudged decide",
    "inconclusive",
]

#: Level of every test and of both lower bounds.
ALPHA = 0.05
#: Statuses that accept a candidate.
ACCEPTED: Final[frozenset[CheckStatus]] = frozenset({"unchanged", "pass", "pass on these queries"})
#: Statuses that claim a drop.
ALARMS: Final[frozenset[CheckStatus]] = frozenset({"fell", "regressed"})


def decide_status(
    *,
    changed: int,
    mean: float,
    max_drop: float,
    t_bound: float,
    betting_bound: float,
    p_fell: float,
    p_regressed: float,
) -> CheckStatus:
    """Decide the status of one check, in the order of ``CheckStatus``.

    ``unchanged``: no query changed. ``pass``: both lower bounds lie above −m; ``pass on these
    queries``: the t bound alone does. ``fell``: the mean is below −m, and d ≥ 0 is rejected;
    ``regressed``: mean ≥ −m is rejected, too. Otherwise ``inconclusive``. NaN never passes.
    ``unjudged decide`` is decided afterwards: see ``gate.unjudged_values.decides_status``.

    Args:
        changed: Queries whose value differs.
        mean: Of candidate − baseline over the queries of the check.
        max_drop: m ≥ 0.
        t_bound: One-sided 95 % lower bound of the mean; NaN = no spread is known.
        betting_bound: The same, assuming only that no difference is below −1.
        p_fell: Of the sign-flip test of d ≥ 0, adjusted over all checks.
        p_regressed: Of the one-sided t test of mean ≥ −m, adjusted likewise.
    """
    status: CheckStatus = "inconclusive"
    if not (p_fell >= 0 and abs(mean) >= 0):  # NaN ends here
        return status
    if not changed:
        return "unchanged"
    if mean < -max_drop - NOISE and p_fell <= ALPHA:
        status = "regressed" if p_regressed <= ALPHA else "fell"
    elif -max_drop < t_bound <= mean:
        status = "pass" if -max_drop < betting_bound <= mean else "pass on these queries"
    return status


def find_blocking(policy: GatePolicy) -> tuple[CheckStatus, ...]:
    """The statuses that block by a policy; the others pass, or are warnings."""
    blocking: list[CheckStatus] = ["regressed", "unjudged decide"]
    if policy.fell == "block":
        blocking.append("fell")
    if policy.inconclusive == "block":
        blocking.append("inconclusive")
    if policy.small_changes == "block":
        blocking.append("pass on these queries")
    return tuple(blocking)

"""The gate on trial: how often it is wrong when the truth is known, on the user's own data.

Two real systems give the differences. In an A/A run their labels are swapped in every group (or
query, where no groups are declared) with probability ½, so that there is no difference in truth.
In a planted run the groups are drawn with replacement, their mean is moved to 0, and then every
query loses the planted drop. Each run is judged by the gate's own functions: the randomisation
test, Holm over all checks, the lower bound and the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.gate.check_statistics import Check
from fusion_bench.gate.power import RulePower
from fusion_bench.gate.self_test.simulate import (
    GroupedCheck,
    adjust_runs,
    decide_runs,
    draw_label_swaps,
    group_check,
    resample_groups,
    simulated_p_values,
    untestable_reason,
)
from fusion_bench.gate.verdict import ALPHA, CheckStatus
from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.util.formatting import pluralize

__all__ = ["ErrorRate", "SelfTestResult", "measure_error_rates"]

#: Planted drops, as multiples of the printed one.
SIZES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ErrorRate:
    """One promise and what became of it.

    Attributes:
        kind: ``false alarm`` = any check ``regressed`` in an A/A run; ``test alone`` = one check's
            test rejects in an A/A run, without Holm and tolerance; ``detection`` = ``regressed``
            at a planted drop; ``false pass`` = ``pass`` at a planted drop of exactly m.
        check: Which check; empty for all together.
        drop: The planted drop; None = none.
        count: Runs in which it happened.
        runs: Of how many.
        low: Clopper–Pearson interval, all findings together at 95 % …
        high: … its upper end.
        promised: What the gate prints or promises.
        at_most: Whether the promise is an upper bound.
    """

    kind: str
    check: str
    drop: float | None
    count: int
    runs: int
    low: float
    high: float
    stated: float
    at_most: bool = False

    @property
    def rate(self) -> float:
        """How often it happened."""
        return self.count / self.runs

    @property
    def agrees(self) -> bool:
        """Whether the interval is compatible with the promise."""
        return self.low <= self.stated and (self.at_most or self.stated <= self.high)


@dataclass(frozen=True)
class SelfTestResult:
    """Every promise, and the printed power curve of every check.

    Attributes:
        findings: In the order of the checks.
        curves: By check: drops and the power that the gate prints for them.
        skipped: Checks that two systems differ on by too few queries, with the reason.
    """

    error_rates: tuple[ErrorRate, ...]
    power_curves: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether every promise held, and there was one."""
        return bool(self.error_rates) and all(finding.agrees for finding in self.error_rates)


def measure_error_rates(
    contests: Sequence[Check],
    *,
    runs: int = 2000,
    alpha: float = ALPHA,
    seed: int = 0,
    progress: Progress | None = None,
) -> SelfTestResult:
    """Try the rule on its own data.

    Args:
        contests: The checks of a policy; baseline and candidate are two different systems.
        runs: Of each kind.
        alpha: Level of the rule.
        seed: Of everything random.
        progress: Called as the work goes on.
    """
    skipped = {c.name: reason for c in contests if (reason := untestable_reason(c)) is not None}
    fit = [contest for contest in contests if contest.name not in skipped]
    tries = [group_check(contest, alpha / len(contests), alpha, seed) for contest in fit]
    skipped |= {
        t.name: f"{pluralize(len(t.sums), 'group')}: too few for the test ever to reject"
        for t in tries
        if t.power.min_detectable_drop is None
    }
    checks = tuple(t for t in tries if t.name not in skipped)
    counts: list[_ErrorCount] = []
    if checks:
        tried = _Simulation(checks, len(contests), runs, alpha, seed)
        counts += tried.measure_false_alarms()
        for c, check in enumerate(checks):
            if progress is not None:
                progress(f"planted drops: {check.name}", c, len(checks))
            counts += tried.measure_drops(c)
    confidence = 1 - 0.05 / max(len(counts), 1)
    findings = []
    for found in counts:
        low, high = clopper_pearson(found.count, runs, confidence)
        findings.append(ErrorRate(runs=runs, low=low, high=high, **asdict(found)))
    return SelfTestResult(
        tuple(findings), {check.name: _power_curve(check.power) for check in checks}, skipped
    )


def _power_curve(found: RulePower) -> tuple[FloatArray, FloatArray]:
    """Drops and printed powers, from none to certain."""
    drops = np.linspace(0, float(found.rejection_drops[-1]), 121)
    return drops, np.array([found.power_at(drop) for drop in drops])


@dataclass(frozen=True)
class _ErrorCount:
    """What was counted, before its interval is known; see ``Finding``."""

    kind: str
    check: str
    drop: float | None
    count: int
    stated: float
    at_most: bool = False


@dataclass(frozen=True, eq=False)
class _Simulation:
    """The checks on trial, one family of Holm's correction.

    Attributes:
        checks: The C checks that can be tried.
        family: How many there are with those that cannot; they take their place with p = 1.
        runs: Of each kind.
        alpha: Level of the rule.
        seed: Of everything random.
    """

    checks: tuple[GroupedCheck, ...]
    family: int
    runs: int
    alpha: float
    seed: int

    def measure_false_alarms(self) -> Iterator[_ErrorCount]:
        """A/A runs: all checks together, and each check's test alone."""
        swapped = draw_label_swaps(self.checks, self.runs, self.seed + 2)
        sums = [
            check.sums * swapped[check.check.collection][:, check.codes] for check in self.checks
        ]
        p = np.stack([simulated_p_values(rows, self.seed + 3) for rows in sums])
        adjusted = adjust_runs(p, self.family)
        alarms = np.zeros(self.runs, dtype=bool)
        for c, check in enumerate(self.checks):
            sizes = np.broadcast_to(check.sizes, sums[c].shape)
            found = decide_runs(sums[c], sizes, adjusted[c], check.check.max_drop, self.alpha)
            alarms |= np.array([verdict == "regressed" for verdict in found])
        yield _ErrorCount("false alarm", "", None, int(alarms.sum()), self.alpha, at_most=True)
        for c, check in enumerate(self.checks):
            rejected = int((p[c] < self.alpha).sum())
            yield _ErrorCount("test alone", check.name, None, rejected, self.alpha, at_most=True)

    def measure_drops(self, c: int) -> Iterator[_ErrorCount]:
        """Drops planted in one check, the others being left without any."""
        check, printed = self.checks[c], self.checks[c].power
        drop = check.check.max_drop
        passed = self._decide_statuses(c, drop).count("pass")
        yield _ErrorCount("false pass", check.name, drop, passed, printed.false_pass_rate or 0.0)
        for size in SIZES:
            drop = size * (printed.min_detectable_drop or 0.0)
            found = self._decide_statuses(c, drop).count("regressed")
            yield _ErrorCount("detection", check.name, drop, found, printed.power_at(drop))

    def _decide_statuses(self, c: int, drop: float) -> list[CheckStatus]:
        """The gate's decision on one check in every run at a planted drop."""
        sums, sizes = self._draw_runs(c, drop)
        p = self._null_p_values.copy()
        p[c] = simulated_p_values(sums, self.seed + 3)
        adjusted = adjust_runs(p, self.family)[c]
        return decide_runs(sums, sizes, adjusted, self.checks[c].check.max_drop, self.alpha)

    def _draw_runs(self, c: int, drop: float) -> tuple[FloatArray, FloatArray]:
        return resample_groups(self.checks[c], drop, self.runs, self.seed + 4 + c)

    @cached_property
    def _null_p_values(self) -> FloatArray:
        """(C, runs): p of every check without a drop."""
        rows = [self._draw_runs(c, 0.0)[0] for c in range(len(self.checks))]
        return np.stack([simulated_p_values(sums, self.seed + 3) for sums in rows])

"""How often the gate errs where the truth is known, measured on the user's data.

Two real systems give the differences. In an A/A run their labels are swapped in every group (or
query, without groups) with probability ½, so that there is no true difference. For a true drop the
groups are drawn with replacement, their mean is moved to 0, and every query loses the drop. The
gate's functions decide each run: the randomization test, Holm's correction over all checks, the
lower bound and the status.
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

#: True drops, as multiples of the minimum detectable drop.
DROP_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ErrorRate:
    """A measured error rate or power, beside the stated one.

    Attributes:
        kind: ``false alarm`` = any check ``regressed`` in an A/A run; ``single test`` = one check's
            test rejects in an A/A run, without Holm's correction and tolerance; ``power`` =
            ``regressed`` at a true drop; ``false pass`` = ``pass`` at a true drop of exactly m.
        check: The check; empty for all together.
        drop: The true drop; None = none.
        count: Runs in which it happened.
        runs: All runs.
        low: Lower end of the Clopper–Pearson interval, 95 % for all rates together.
        high: Upper end.
        stated: The level of the rule, or what the gate prints.
        is_upper_bound: Whether the true rate may be lower than the stated one.
    """

    kind: str
    check: str
    drop: float | None
    count: int
    runs: int
    low: float
    high: float
    stated: float
    is_upper_bound: bool = False

    @property
    def rate(self) -> float:
        """Share of the runs in which it happened."""
        return self.count / self.runs

    @property
    def agrees(self) -> bool:
        """Whether the interval is compatible with the stated rate."""
        return self.low <= self.stated and (self.is_upper_bound or self.stated <= self.high)


@dataclass(frozen=True)
class SelfTestResult:
    """Every error rate, and the power curve of every check.

    Attributes:
        error_rates: In the order of the checks.
        power_curves: By check: true drops and the power that the gate states for them.
        max_drops: By check.
        skipped: Checks that cannot be tested, with the reason.
        systems: The reference system and the gated one.
    """

    error_rates: tuple[ErrorRate, ...]
    power_curves: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    max_drops: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    systems: tuple[str, str] = ("baseline", "candidate")

    @property
    def agrees(self) -> bool:
        """Whether every rate agrees with the stated one, and there is one."""
        return bool(self.error_rates) and all(rate.agrees for rate in self.error_rates)

    @property
    def headline(self) -> str:
        """The outcome in one line."""
        if not self.error_rates:
            return "no check can be tested: " + "; ".join(self.skipped.values())
        wrong = sum(not rate.agrees for rate in self.error_rates)
        outcome = f"{wrong} disagree" if wrong else "all agree"
        return (
            f"{len(self.error_rates)} error rates, {self.error_rates[0].runs:,} runs each: "
            f"{outcome} with the stated rate"
        )


def measure_error_rates(
    checks: Sequence[Check],
    *,
    runs: int = 2000,
    alpha: float = ALPHA,
    seed: int = 0,
    progress: Progress | None = None,
) -> SelfTestResult:
    """Measure the error rates of the rule.

    Args:
        checks: The checks of a policy; baseline and candidate are two different systems.
        runs: Runs of each kind.
        alpha: Level of the rule.
        seed: Seed of all random numbers.
        progress: Called with the stage, the steps done and all steps.
    """
    skipped = {c.name: reason for c in checks if (reason := untestable_reason(c)) is not None}
    testable = [check for check in checks if check.name not in skipped]
    grouped = [group_check(check, alpha / len(checks), alpha, seed) for check in testable]
    skipped |= {
        group.name: f"{pluralize(len(group.sums), 'group')}: too few for the test to reject"
        for group in grouped
        if group.power.min_detectable_drop is None
    }
    simulated = tuple(group for group in grouped if group.name not in skipped)
    counts: list[_ErrorCount] = []
    if simulated:
        simulation = _Simulation(simulated, len(checks), runs, alpha, seed)
        counts += simulation.measure_false_alarms()
        for c, check in enumerate(simulated):
            if progress is not None:
                progress(f"true drops: {check.name}", c, len(simulated))
            counts += simulation.measure_drops(c)
    confidence = 1 - 0.05 / max(len(counts), 1)
    rates = []
    for count in counts:
        low, high = clopper_pearson(count.count, runs, confidence)
        rates.append(ErrorRate(runs=runs, low=low, high=high, **asdict(count)))
    return SelfTestResult(
        tuple(rates),
        {check.name: _power_curve(check.power) for check in simulated},
        {check.name: check.max_drop for check in checks},
        skipped,
    )


def _power_curve(power: RulePower) -> tuple[FloatArray, FloatArray]:
    """True drops from 0 to certain detection, and the stated power."""
    drops = np.linspace(0, float(power.rejection_drops[-1]), 121)
    return drops, np.array([power.power_at(drop) for drop in drops])


@dataclass(frozen=True)
class _ErrorCount:
    """A count before its interval is known; see ``ErrorRate``."""

    kind: str
    check: str
    drop: float | None
    count: int
    stated: float
    is_upper_bound: bool = False


@dataclass(frozen=True, eq=False)
class _Simulation:
    """The simulated checks, one family of Holm's correction.

    Attributes:
        checks: The C checks that can be tested.
        family: The number of all checks; the others stay in the family with p = 1.
        runs: Runs of each kind.
        alpha: Level of the rule.
        seed: Seed of all random numbers.
    """

    checks: tuple[GroupedCheck, ...]
    family: int
    runs: int
    alpha: float
    seed: int

    def measure_false_alarms(self) -> Iterator[_ErrorCount]:
        """A/A runs: all checks together, and each check's test alone."""
        signs = draw_label_swaps(self.checks, self.runs, self.seed + 2)
        sums = [check.sums * signs[check.check.collection][:, check.codes] for check in self.checks]
        p = np.stack([simulated_p_values(rows, self.seed + 3) for rows in sums])
        adjusted = adjust_runs(p, self.family)
        has_alarm = np.zeros(self.runs, dtype=bool)
        for c, check in enumerate(self.checks):
            sizes = np.broadcast_to(check.sizes, sums[c].shape)
            statuses = decide_runs(sums[c], sizes, adjusted[c], check.check.max_drop, self.alpha)
            has_alarm |= np.array([status == "regressed" for status in statuses])
        count = int(has_alarm.sum())
        yield _ErrorCount("false alarm", "", None, count, self.alpha, is_upper_bound=True)
        for c, check in enumerate(self.checks):
            count = int((p[c] < self.alpha).sum())
            yield _ErrorCount(
                "single test", check.name, None, count, self.alpha, is_upper_bound=True
            )

    def measure_drops(self, c: int) -> Iterator[_ErrorCount]:
        """True drops in one check, and none in the others."""
        check, power = self.checks[c], self.checks[c].power
        drop = check.check.max_drop
        passed = self._decide_statuses(c, drop).count("pass")
        yield _ErrorCount("false pass", check.name, drop, passed, power.false_pass_rate or 0.0)
        for multiple in DROP_MULTIPLES:
            drop = multiple * (power.min_detectable_drop or 0.0)
            count = self._decide_statuses(c, drop).count("regressed")
            yield _ErrorCount("power", check.name, drop, count, power.power_at(drop))

    def _decide_statuses(self, c: int, drop: float) -> list[CheckStatus]:
        """The status of one check in every run at a true drop."""
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

"""How often the gate errs where the truth is known, measured on the user's data.

Two real systems give the differences. In an A/A run their labels are swapped in every group (or
query, without groups) with probability ½, so that there is no true difference. For a true drop the
groups are drawn with replacement, their mean is moved to 0, and every query loses the drop. The
gate's functions decide each run: the randomization test, Holm's correction over all checks, the
lower bound and the status.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress
from fusion_bench.gate.checks import Check
from fusion_bench.gate.self_test.result import ErrorRate, PowerCurve, SelfTestResult
from fusion_bench.gate.self_test.simulate import (
    GroupedCheck,
    adjust_runs,
    decide_runs,
    draw_label_swaps,
    group_check,
    resample_groups,
    simulated_p_values,
)
from fusion_bench.gate.verdict import ACCEPTED, ALPHA, CheckStatus
from fusion_bench.stats.intervals import POWER, clopper_pearson

#: True drops, as multiples of the minimum detectable drop.
DROP_MULTIPLES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


def measure_error_rates(
    checks: Sequence[Check],
    *,
    systems: tuple[str, str] = ("baseline", "candidate"),
    runs: int = 2000,
    seed: int = 0,
    progress: Progress = ignore_progress,
) -> SelfTestResult:
    """Measure the error rates of the rule.

    Args:
        checks: The checks of a policy; baseline and candidate are two different systems.
        systems: The names of the two systems.
        runs: Runs of each kind.
        seed: Seed of all random numbers.
        progress: Called with the stage, the steps done and all steps.
    """
    simulated: list[GroupedCheck] = []
    rates: list[ErrorRate] = []
    curves: dict[str, PowerCurve] = {}
    skipped: dict[str, str] = {}
    for check in checks:
        try:
            simulated.append(group_check(check, ALPHA / len(checks), seed))
        except DataError as error:
            skipped[check.name] = str(error)
    if simulated:
        simulation = _Simulation(simulated, len(checks), runs, seed)
        rates += simulation.measure_false_alarms()
        for c, group in enumerate(simulated):
            name, power = group.check.name, group.power
            progress(f"true drops: {name}", c, len(simulated))
            rates += simulation.measure_drops(c)
            drops = np.linspace(0, float(power.rejection_drops[-1]), 121).tolist()
            stated = tuple(map(power.power_at, drops))
            curves[name] = PowerCurve(drop=drops, power=stated, max_drop=group.check.max_drop)
    return SelfTestResult(
        systems=systems,
        agrees=bool(rates) and all(rate.agrees for rate in rates),
        error_rates=tuple(rates),
        power_curves=curves,
        skipped=skipped,
    )


@dataclass(frozen=True)
class _Simulation:
    """The simulated checks, one family of Holm's correction.

    Attributes:
        checks: The C checks that can be tested.
        family: The number of all checks; the others stay in the family with p = 1.
        runs: Runs of each kind.
        seed: Seed of all random numbers.
    """

    checks: Sequence[GroupedCheck]
    family: int
    runs: int
    seed: int

    def measure_false_alarms(self) -> Iterator[ErrorRate]:
        """A/A runs: all checks together, and each check's test alone."""
        signs = draw_label_swaps(self.checks, self.runs, self.seed + 2)
        sums = [check.sums * signs[check.check.collection][:, check.codes] for check in self.checks]
        p = np.stack([simulated_p_values(rows, self.seed + 3) for rows in sums])
        adjusted = adjust_runs(p, self.family)
        statuses = [
            decide_runs(
                rows, np.broadcast_to(check.sizes, rows.shape), p_holm, check.check.max_drop
            )
            for check, rows, p_holm in zip(self.checks, sums, adjusted, strict=True)
        ]
        alarms = sum("fell" in run for run in zip(*statuses, strict=True))
        yield self._build_rate("false alarm", "", None, alarms, ALPHA)
        for check, row in zip(self.checks, p, strict=True):
            count, name = int((row < ALPHA).sum()), check.check.name
            yield self._build_rate("single test", name, None, count, ALPHA)

    def measure_drops(self, c: int) -> Iterator[ErrorRate]:
        """True drops in one check, and none in the others."""
        check, power = self.checks[c].check, self.checks[c].power
        statuses = self._decide_statuses(c, check.max_drop)
        passes = sum(status in ACCEPTED for status in statuses)
        stated = power.false_pass_rate or 0.0
        yield self._build_rate("false pass", check.name, check.max_drop, passes, stated)
        for multiple in DROP_MULTIPLES:
            drop = multiple * (power.min_detectable_drop or 0.0)
            count = self._decide_statuses(c, drop).count("fell")
            # The power at the detectable drop is 80 % by definition, whatever the curve says.
            stated = POWER if multiple == 1 else power.power_at(drop)
            yield self._build_rate("power", check.name, drop, count, stated)

    def _build_rate(
        self,
        kind: str,
        check: str,
        drop: float | None,
        count: int,
        stated: float,
    ) -> ErrorRate:
        is_upper_bound = drop is None
        rates = 1 + len(self.checks) * (2 + len(DROP_MULTIPLES))
        low, high = clopper_pearson(count, self.runs, 1 - 0.05 / rates)
        return ErrorRate(
            kind=kind,
            check=check,
            drop=drop,
            count=count,
            runs=self.runs,
            low=low,
            high=high,
            stated=stated,
            is_upper_bound=is_upper_bound,
            rate=count / self.runs,
            agrees=low <= stated and (is_upper_bound or stated <= high),
        )

    def _decide_statuses(self, c: int, drop: float) -> list[CheckStatus]:
        """(runs,): the status of one check in every run at a true drop."""
        check = self.checks[c]
        sums, sizes = resample_groups(check, drop, self.runs, self.seed + 4 + c)
        p = self._null_p_values.copy()
        p[c] = simulated_p_values(sums, self.seed + 3)
        return decide_runs(sums, sizes, adjust_runs(p, self.family)[c], check.check.max_drop)

    @cached_property
    def _null_p_values(self) -> FloatArray:
        """(C, runs): p of every check without a drop."""
        drawn = [
            resample_groups(check, 0.0, self.runs, self.seed + 4 + c)
            for c, check in enumerate(self.checks)
        ]
        return np.stack([simulated_p_values(sums, self.seed + 3) for sums, _ in drawn])

"""What a self-test finds, as ``self-test.json`` holds it.

Format history:
    3   first version with this history
    4   ``list_trials`` and ``trial_alarms``: alarms between trials of the gated system
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fusion_bench.config.files.json_records import StoredRecord
from fusion_bench.gate.self_test.halves import HalvesOutcome
from fusion_bench.gate.self_test.new_trials import TrialAlarms
from fusion_bench.gate.self_test.whole_command.outcome import CaseOutcome


class ErrorRate(StoredRecord):
    """A measured error rate or power, beside the stated one.

    Attributes:
        kind: ``false alarm`` = any check ``fell`` in an A/A run; ``single test`` = one check's
            test rejects in an A/A run, without Holm's correction and tolerance; ``power`` =
            ``fell`` at a true drop; ``false pass`` = either pass at a true drop of exactly m.
        check: The check; empty for all together.
        drop: The true drop; None = none.
        count: Runs in which it happened.
        runs: All runs.
        low: Lower end of the Clopper–Pearson interval, 95 % for all rates together.
        high: Upper end.
        stated: The level of the rule, or what the gate prints.
        is_upper_bound: Whether the true rate may be lower than the stated one.
        rate: Share of the runs in which it happened.
        agrees: Whether the interval is compatible with the stated rate.
    """

    kind: str
    check: str
    drop: float | None
    count: int
    runs: int
    low: float
    high: float
    stated: float
    is_upper_bound: bool
    rate: float
    agrees: bool


class PowerCurve(StoredRecord):
    """The power that the gate states for a check.

    Attributes:
        drop: True drops from 0 to certain detection.
        power: The power at each.
        max_drop: The tolerance of the check.
    """

    drop: tuple[float, ...]
    power: tuple[float, ...]
    max_drop: float


class SelfTestResult(StoredRecord):
    """Every error rate, and the power curve of every check.

    Attributes:
        systems: The reference system and the gated one.
        agrees: Whether every rate agrees with the stated one, and there is one.
        error_rates: In the order of the checks.
        power_curves: By check.
        skipped: Checks that cannot be tested, with the reason.
        halves: Printed chances against what happens on other queries.
        cases: Answers of the whole command where the right one is known.
        list_trials: Trials of the gated system. All but ``trial_alarms`` takes the means over them
            as the values of one trial, and damages the lists of the first.
        trial_alarms: Alarms where both sides are trials of the gated system; empty with one trial.
    """

    format: Literal["fusion-bench-self-test"] = "fusion-bench-self-test"
    format_version: int = 5
    systems: tuple[str, str]
    agrees: bool
    error_rates: tuple[ErrorRate, ...]
    power_curves: dict[str, PowerCurve]
    skipped: dict[str, str]
    halves: tuple[HalvesOutcome, ...] = ()
    cases: tuple[CaseOutcome, ...] = ()
    list_trials: int = 1
    trial_alarms: tuple[TrialAlarms, ...] = ()

    @property
    def headline(self) -> str:
        """The outcome in one line."""
        if not self.error_rates:
            return "no check can be tested: " + "; ".join(self.skipped.values())
        wrong = sum(not rate.agrees for rate in self.error_rates)
        outcome = f"{wrong} disagree" if wrong else "all agree"
        parts = [
            f"{len(self.error_rates)} error rates, {self.error_rates[0].runs:,} runs each: "
            f"{outcome} with the stated rate"
        ]
        if self.halves:
            wrong = sum(not half.agrees for half in self.halves)
            outcome = f"{wrong} disagree" if wrong else "all hold"
            parts.append(f"{len(self.halves)} printed chances on other queries: {outcome}")
        if self.cases:
            wrong = sum(bool(case.faults) for case in self.cases)
            outcome = f"{wrong} wrong" if wrong else "all right"
            parts.append(f"{len(self.cases)} answers of the whole command: {outcome}")
        if self.trial_alarms:
            wrong = sum(not row.agrees for row in self.trial_alarms)
            outcome = f"{wrong} above the level" if wrong else "none above the level"
            parts.append(f"{len(self.trial_alarms)} rates of alarms between trials: {outcome}")
        return "; ".join(parts)

    def with_answers(
        self, halves: Sequence[HalvesOutcome], cases: Sequence[CaseOutcome]
    ) -> SelfTestResult:
        """This result with what the whole command answered."""
        holds = all(half.agrees for half in halves) and not any(case.faults for case in cases)
        changes = {"halves": tuple(halves), "cases": tuple(cases)}
        return self.model_copy(update={**changes, "agrees": self.agrees and holds})

    def with_trials(self, count: int, alarms: Sequence[TrialAlarms]) -> SelfTestResult:
        """This result with the alarms between the ``count`` trials of the gated system."""
        agrees = self.agrees and all(row.agrees for row in alarms)
        changes = {"list_trials": count, "trial_alarms": tuple(alarms), "agrees": agrees}
        return self.model_copy(update=changes)

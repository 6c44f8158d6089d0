"""How often the gate errs where the truth is known: the self-test of an experiment's gate.

Format history:
    3   first version with this history
    4   ``list_trials`` and ``trial_alarms``: alarms between repeats of the gated system

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
from typing import Literal

import numpy as np

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.gate.checks import Check, PairedCollection, build_checks, run_checks
from fusion_bench.gate.estimates import CheckRepeats
from fusion_bench.gate.inputs import GateInputs, describe_collection
from fusion_bench.gate.page import power_warning
from fusion_bench.gate.power import RulePower, compute_power
from fusion_bench.gate.self_test.simulation import (
    CountedRate,
    HalvesOutcome,
    RepeatAlarms,
    compare_halves,
    count_rate,
    decide_runs,
    measure_repeat_alarms,
    simulated_p_values,
)
from fusion_bench.gate.self_test.whole_command import CaseOutcome, run_damaged_lists
from fusion_bench.gate.verdict import ACCEPTED, ALPHA, CheckStatus
from fusion_bench.stats.corrections import adjust_holm
from fusion_bench.stats.intervals import POWER, draw_groups, group_codes
from fusion_bench.util.formatting import Progress, ignore_progress, pluralize


class ErrorRate(CountedRate):
    """A measured error rate or power, beside the stated one.

    Attributes:
        kind: ``false alarm`` = any check ``fell`` in an A/A run; ``single test`` = one check's
            test rejects in an A/A run, without Holm's correction and tolerance; ``power`` =
            ``fell`` at a true drop; ``false pass`` = either pass at a true drop of exactly m.
        drop: The true drop; None = none.
        stated: The level of the rule, or what the gate prints.
        is_upper_bound: Whether the true rate may be lower than the stated one.
    """

    kind: str
    drop: float | None
    stated: float
    is_upper_bound: bool


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
    trial_alarms: tuple[RepeatAlarms, ...] = ()

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

    def with_repeats(self, count: int, alarms: Sequence[RepeatAlarms]) -> SelfTestResult:
        """This result with the alarms between the ``count`` repeats of the gated system."""
        agrees = self.agrees and all(row.agrees for row in alarms)
        changes = {"list_trials": count, "trial_alarms": tuple(alarms), "agrees": agrees}
        return self.model_copy(update=changes)


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


#: Fewer changed queries are no distribution to draw from.
MIN_CHANGED = 10


@dataclass(frozen=True, eq=False)
class GroupedCheck:
    """A check summed by group.

    Attributes:
        check: The check.
        codes: Shape (G,): the collection's code of each group, shared by its slices.
        sums: Shape (G,): sums of the differences.
        sizes: Shape (G,): numbers of queries.
        power: The power that the gate states.
    """

    check: Check
    codes: IntArray
    sums: FloatArray
    sizes: FloatArray
    power: RulePower


def group_check(check: Check, level: float, seed: int) -> GroupedCheck:
    """Sum a check by group, and compute its power at this level of the test.

    Raises:
        DataError: The check cannot be simulated.
    """
    if check.error is not None:
        raise DataError(check.error)
    changed = int((check.difference != 0).sum())
    if changed < MIN_CHANGED:
        raise DataError(
            f"the two systems differ on {pluralize(changed, 'query')}, and at least {MIN_CHANGED} "
            "are needed"
        )
    codes, count = group_codes(check.groups, len(check.groups))
    first = np.full(count, -1)
    first[codes[::-1]] = check.groups[::-1]
    [power] = compute_power(
        check.difference[None], check.groups, [check.max_drop], level=level, seed=seed + 1
    )
    if power.min_detectable_drop is None:
        raise DataError(f"{pluralize(count, 'group')}: too few for the test to reject")
    return GroupedCheck(
        check=check,
        codes=first,
        sums=np.bincount(codes, weights=check.difference, minlength=count).astype(np.float64),
        sizes=np.bincount(codes, minlength=count).astype(np.float64),
        power=power,
    )


def draw_label_swaps(checks: Sequence[GroupedCheck], runs: int, seed: int) -> dict[str, FloatArray]:
    """By collection ±1 of shape (runs, codes), so that all slices swap a group alike."""
    collections = dict.fromkeys(check.check.collection for check in checks)
    signs: dict[str, FloatArray] = {}
    for i, name in enumerate(collections):
        codes = max(int(c.codes.max()) for c in checks if c.check.collection == name) + 1
        drawn = np.random.Generator(np.random.PCG64([seed, i])).integers(0, 2, (runs, codes))
        signs[name] = (2 * drawn - 1).astype(np.float64)
    return signs


def _resample_groups(
    check: GroupedCheck, drop: float, runs: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draw groups with replacement at a true mean of −drop: sums and sizes, both (runs, G)."""
    drawn = np.concatenate(list(draw_groups(len(check.sums), runs, seed)))
    sizes = check.sizes[drawn]
    centered = check.sums - check.sizes * float(check.sums.sum() / check.sizes.sum())
    return centered[drawn] - drop * sizes, sizes


def _adjust_runs(p: FloatArray, family: int) -> FloatArray:
    """(C, runs): p adjusted in each run; checks that are not simulated count with p = 1."""
    filler = np.ones(family - len(p))
    columns = [adjust_holm(np.concatenate([column, filler]))[: len(p)] for column in p.T]
    return np.stack(columns, axis=1)


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
        adjusted = _adjust_runs(p, self.family)
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
        self, kind: str, check: str, drop: float | None, count: int, stated: float
    ) -> ErrorRate:
        is_upper_bound = drop is None
        rates = 1 + len(self.checks) * (2 + len(DROP_MULTIPLES))
        rate = count_rate(check, count, self.runs, 1 - 0.05 / rates)
        return ErrorRate(
            **rate,
            kind=kind,
            drop=drop,
            stated=stated,
            is_upper_bound=is_upper_bound,
            agrees=rate["low"] <= stated and (is_upper_bound or stated <= rate["high"]),
        )

    def _decide_statuses(self, c: int, drop: float) -> list[CheckStatus]:
        """(runs,): the status of one check in every run at a true drop."""
        check = self.checks[c]
        sums, sizes = _resample_groups(check, drop, self.runs, self.seed + 4 + c)
        p = self._null_p_values.copy()
        p[c] = simulated_p_values(sums, self.seed + 3)
        return decide_runs(sums, sizes, _adjust_runs(p, self.family)[c], check.check.max_drop)

    @cached_property
    def _null_p_values(self) -> FloatArray:
        """(C, runs): p of every check without a drop."""
        drawn = [
            _resample_groups(check, 0.0, self.runs, self.seed + 4 + c)
            for c, check in enumerate(self.checks)
        ]
        return np.stack([simulated_p_values(sums, self.seed + 3) for sums, _ in drawn])


def run_self_test(
    inputs: GateInputs, *, against: str | None = None, runs: int = 2000
) -> SelfTestResult:
    """Measure the error rates of an experiment's gate, and run it where the answer is known.

    Args:
        inputs: The experiment, and where its data is.
        against: Another system of the experiment.
        runs: Runs of each kind.
    """
    reference = _choose_reference(inputs, against)
    checks, repeated, repeats = _compare_systems(inputs, reference)
    systems = (reference.name, inputs.candidate.name)
    seed, progress = inputs.experiment.seed, inputs.progress
    rates = measure_error_rates(checks, systems=systems, runs=runs, seed=seed, progress=progress)
    if repeated:
        progress("new trials", 0, 1)
        alarms = measure_repeat_alarms(repeated, runs=runs, seed=seed)
        rates = rates.with_repeats(repeats, alarms)
    progress("halves", 0, 1)
    halves = compare_halves(checks, seed=seed)
    progress("whole command", 0, 1)
    return rates.with_answers(halves, [*run_damaged_lists(inputs)])


def check_power(inputs: GateInputs) -> tuple[str, ...]:
    """Warn of the checks of an experiment that cannot detect drops near their tolerance.

    A future change is not known, so the spread is that of the gated system against the
    experiment's baseline, or the next system, as in the self-test.

    Returns:
        One warning a check. No warnings where no second system runs: then no spread is known.
    """
    try:
        checks, names = compare_two_systems(inputs)
    except FusionBenchError:
        return ()
    inputs.progress("testing", 0, 1)
    return tuple(
        f"{check.name}: {warning} (from the differences of {names[1]} and {names[0]})"
        for check in run_checks(checks, seed=inputs.experiment.seed)
        if (warning := power_warning(check)) is not None
    )


def compare_two_systems(inputs: GateInputs) -> tuple[list[Check], tuple[str, str]]:
    """Every check of a policy, and the names of the reference and of the gated system."""
    reference = _choose_reference(inputs, None)
    checks, _, _ = _compare_systems(inputs, reference)
    return checks, (reference.name, inputs.candidate.name)


def _choose_reference(inputs: GateInputs, against: str | None) -> System:
    """The system that the gated one is compared with.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigError: The gated system is the only one.
    """
    experiment, candidate = inputs.experiment, inputs.candidate
    names = [against] if against else [experiment.baseline, *experiment.systems]
    others = [
        experiment.find_system(name, "--other-system") for name in names if name != candidate.name
    ]
    if not others:
        raise ConfigError(
            f"{inputs.source.path}: a self-test needs two different systems, and the only one is "
            f"{candidate.name!r}"
        )
    return others[0]


def _compare_systems(inputs: GateInputs, reference: System) -> tuple[list[Check], list[Check], int]:
    """Two systems on every collection.

    Returns:
        Every check of the policy; every check of the gated system against itself where its lists
        have several repeats; the most repeats of a collection.
    """
    checks: list[Check] = []
    repeated: list[Check] = []
    counts = []
    for task in inputs.load_collections(reference):
        before = describe_collection(task, reference).value_arrays()
        record = describe_collection(task, inputs.candidate)
        after = record.value_arrays()
        checks += build_checks(inputs.policy, PairedCollection(task, before, after))
        repeats = {name: CheckRepeats(each, each) for name, each in record.repeat_arrays().items()}
        if repeats:
            repeated += build_checks(
                inputs.policy, PairedCollection(task, after, after, None, repeats)
            )
        counts.append(task.runs.count_repeats(inputs.candidate.list_keys))
    return checks, repeated, max(counts)

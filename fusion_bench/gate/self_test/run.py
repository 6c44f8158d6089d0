"""The self-test of an experiment's gate: two of its systems on its own collections."""

from __future__ import annotations

from typing import NamedTuple

from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.gate.checks import Check, build_checks, run_checks
from fusion_bench.gate.inputs import GateInputs, describe_collection
from fusion_bench.gate.pages.check_texts import power_warning
from fusion_bench.gate.self_test.error_rates import measure_error_rates
from fusion_bench.gate.self_test.halves import compare_halves
from fusion_bench.gate.self_test.new_trials import measure_trial_alarms
from fusion_bench.gate.self_test.result import SelfTestResult
from fusion_bench.gate.self_test.whole_command.damaged import run_damaged_lists
from fusion_bench.gate.self_test.whole_command.run import run_cases
from fusion_bench.gate.trials.check_trials import PairedTrials


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
    compared = _compare_systems(inputs, reference)
    checks = [check for each in compared for check in each.checks]
    systems = (reference.name, inputs.candidate.name)
    seed, progress = inputs.experiment.seed, inputs.progress
    rates = measure_error_rates(checks, systems=systems, runs=runs, seed=seed, progress=progress)
    if repeated := [check for each in compared for check in each.repeated]:
        progress("new trials", 0, 1)
        alarms = measure_trial_alarms(repeated, runs=runs, seed=seed)
        rates = rates.with_trials(max(each.trials for each in compared), alarms)
    progress("halves", 0, 1)
    halves = compare_halves(checks, seed=seed)
    progress("whole command", 0, 1)
    return rates.with_answers(halves, [*run_damaged_lists(inputs), *run_cases()])


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


def compare_two_systems(
    inputs: GateInputs, against: str | None = None
) -> tuple[list[Check], tuple[str, str]]:
    """Every check of a policy, and the names of the reference and of the gated system."""
    reference = _choose_reference(inputs, against)
    compared = _compare_systems(inputs, reference)
    checks = [check for each in compared for check in each.checks]
    return checks, (reference.name, inputs.candidate.name)


class _ComparedCollection(NamedTuple):
    """The checks of one collection.

    Attributes:
        checks: The gated system against the reference, as means over trials.
        repeated: The gated system against itself, with the values of each trial; empty with one.
        trials: Of the gated system.
    """

    checks: list[Check]
    repeated: list[Check]
    trials: int


def _choose_reference(inputs: GateInputs, against: str | None) -> System:
    """The system that the gated one is compared with.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigError: The gated system is the only one.
    """
    experiment, candidate = inputs.experiment, inputs.candidate
    if against is not None and against not in experiment.systems:
        raise UnknownNameError("system", against, experiment.systems, where="--against")
    names = [against] if against else [experiment.baseline, *experiment.systems]
    others = [experiment.systems[name] for name in names if name != candidate.name]
    if not others:
        raise ConfigError(
            f"{inputs.source.path}: a self-test needs two different systems, and the only one is "
            f"{candidate.name!r}"
        )
    return others[0]


def _compare_systems(inputs: GateInputs, reference: System) -> list[_ComparedCollection]:
    compared = []
    for task in inputs.load_collections(reference):
        before = describe_collection(task, reference).value_arrays()
        record = describe_collection(task, inputs.candidate)
        after, values = record.value_arrays(), record.trial_arrays()
        checks = [*build_checks(inputs.policy, task, before, after)]
        repeated: list[Check] = []
        if values:
            trials = PairedTrials(values, values, is_shared=False, borrows=False)
            repeated += build_checks(inputs.policy, task, after, after, None, trials)
        count = task.count_trials(inputs.candidate)
        compared.append(_ComparedCollection(checks, repeated, count))
    return compared

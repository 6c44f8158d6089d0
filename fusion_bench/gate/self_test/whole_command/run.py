"""Run the gate command on every made case, and compare its answer with the right one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fusion_bench.gate.self_test.whole_command.cases import HIT, RR, MadeCase, make_cases
from fusion_bench.gate.self_test.whole_command.commands import run_commands
from fusion_bench.gate.self_test.whole_command.outcome import (
    TOLERANCE,
    CaseOutcome,
    Checks,
    judge_command,
)
from fusion_bench.gate.self_test.whole_command.project import GATE, UPDATE
from fusion_bench.gate.self_test.whole_command.slow_rule import SlowCheck, decide_family
from fusion_bench.util.processes.worker_process import WorkerProcess

#: Statuses that block with exit code 1.
ALARMS = frozenset({"fell", "regressed"})


def run_cases() -> tuple[CaseOutcome, ...]:
    """Run every case in a temporary folder: the first baseline, the change, the gate."""
    cases = list(make_cases())
    with (
        tempfile.TemporaryDirectory(prefix="fusion-bench-self-test-") as place,
        WorkerProcess() as process,
    ):
        folders = [Path(place) / str(number) for number in range(len(cases))]
        for case, folder in zip(cases, folders, strict=True):
            case.project.write(folder)
        run_commands([(folder, UPDATE) for folder in folders], process)
        for case, folder in zip(cases, folders, strict=True):
            case.project.gate_list(folder, "after")
        codes = run_commands([(folder, GATE) for folder in folders], process)
        return tuple(
            judge_command(case.name, folder, code, partial(find_faults, case, code))
            for case, code, folder in zip(cases, codes, folders, strict=True)
        )


def find_faults(case: MadeCase, code: int, checks: Checks) -> Iterator[str]:
    """What is wrong with the answer of a command.

    Args:
        case: What was tried.
        code: The exit code.
        checks: The records of the checks: ``measure``, ``reference``, ``status``, ``difference``.
    """
    slow = [_slow_check(case, check) for check in checks]
    right = decide_family(slow)
    for check, other, status in zip(checks, slow, right, strict=True):
        name = f"{check['measure']} ({check['reference']})"
        if check["status"] != status:
            yield f"{name}: {check['status']}, and {status} is right"
        if check["status"] in case.never:
            yield f"{name}: {check['status']}, which no rule may say here"
        if abs(check["difference"] - other.mean) > TOLERANCE:
            yield f"{name}: a difference of {check['difference']:.6f}, not {other.mean:.6f}"
    expected = _exit_code(right, case) if case.exit_code is None else case.exit_code
    if code != expected:
        yield f"exit code {code}, and {expected} is right"


def _slow_check(case: MadeCase, check: Mapping[str, Any]) -> SlowCheck:
    """What a check must compute; since the anchor the tolerance is twice as large."""
    project, measure = case.project, check["measure"]
    pairs = zip(project.after, project.before, strict=True)
    differences = [_value(measure, after) - _value(measure, before) for after, before in pairs]
    max_drop = project.policy["checks"][measure]["max_drop"]
    factor = 2 if check["reference"] == "anchor" else 1
    return SlowCheck(differences, factor * max_drop, project.groups)


def _value(measure: str, rank: int) -> float:
    """Of one query with one relevant document; rank 0 = it is not in the list."""
    values = {RR: 1 / rank if rank else 0.0, HIT: float(1 <= rank <= 5)}
    return values[measure]


def _exit_code(statuses: Sequence[str], case: MadeCase) -> int:
    """By the default policy: an alarm blocks with 1, what is inconclusive with 3."""
    if ALARMS.intersection(statuses):
        return 1
    policy = case.project.policy
    return 3 if "inconclusive" in statuses and policy.get("inconclusive") != "warn" else 0

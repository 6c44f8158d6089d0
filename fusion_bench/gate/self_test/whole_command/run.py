"""Run the gate command on every made case, and compare its answer with the right one."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fusion_bench.gate.self_test.whole_command.cases import COMMANDS, HIT, RR, MadeCase, make_cases
from fusion_bench.gate.self_test.whole_command.commands import run_commands
from fusion_bench.gate.self_test.whole_command.outcome import (
    TOLERANCE,
    CaseOutcome,
    Checks,
    judge_command,
)
from fusion_bench.gate.self_test.whole_command.slow_rule import LEVEL, SlowCheck, decide_family
from fusion_bench.util.processes.worker_process import WorkerProcess

#: A simulated chance may differ from the right one by this much.
SIMULATED = 0.02
#: Statuses that block with exit code 1.
ALARMS = frozenset({"fell", "regressed"})


def run_cases() -> Iterator[CaseOutcome]:
    """Run the steps of every case in a temporary folder, and judge the last."""
    with (
        tempfile.TemporaryDirectory(prefix="fusion-bench-self-test-") as place,
        WorkerProcess() as process,
    ):
        for number, case in enumerate(make_cases()):
            yield _run_case(case, Path(place) / str(number), process)


def _run_case(case: MadeCase, folder: Path, process: WorkerProcess) -> CaseOutcome:
    for name, action in case.steps:
        case.project.write(folder, name, is_alone=action == "alone")
        [code] = run_commands([(folder, COMMANDS[action])], process)
    return judge_command(case.name, folder, code, partial(find_faults, case, code))


def find_faults(case: MadeCase, code: int, checks: Checks) -> Iterator[str]:
    """What is wrong with the answer of a command.

    Args:
        case: What was tried.
        code: The exit code.
        checks: The records of the checks: ``measure``, ``reference``, ``status``, ``difference``.
    """
    slow = [_slow_check(case, check) for check in checks]
    right = case.statuses or decide_family(slow)
    if len(right) != len(checks):
        yield f"{len(checks)} checks, and {len(right)} are right"
    for check, other, status in zip(checks, slow, right, strict=False):
        name = f"{check['measure']} ({check['reference']})"
        if check["status"] != status:
            yield f"{name}: {check['status']}, and {status} is right"
        if check["status"] in case.never:
            yield f"{name}: {check['status']}, which no rule may say here"
        if abs(check["difference"] - other.mean) > TOLERANCE:
            yield f"{name}: a difference of {check['difference']:.6f}, not {other.mean:.6f}"
        rate, printed = other.false_pass_rate, check["false_pass_rate"] or 0.0
        if not case.statuses and rate is not None and abs(printed - rate) > SIMULATED:
            yield f"{name}: P(passes at −m) of {printed:.4f}, not {rate:.4f}"
    expected = _exit_code(right, case) if case.exit_code is None else case.exit_code
    if code != expected:
        yield f"exit code {code}, and {expected} is right"


def _slow_check(case: MadeCase, check: Mapping[str, Any]) -> SlowCheck:
    """What a check must compute; a list ``between`` is the baseline since the anchor."""
    project, measure, policy = case.project, check["measure"], case.project.policy
    is_anchor = check["reference"] == "anchor"
    reference = "before" if is_anchor or "between" not in project.lists else "between"
    after, before = (_values(measure, project.lists[n]) for n in (case.steps[-1][0], reference))
    types = project.types or [""] * len(after)
    rows = [i for i, name in enumerate(types) if check["slice"] in {None, name}]
    limits = policy["checks"][measure]
    since_anchor = limits.get("max_drop_since_anchor", 2 * limits["max_drop"])
    return SlowCheck(
        [after[i] - before[i] for i in rows],
        since_anchor if is_anchor else limits["max_drop"],
        [project.groups[i] for i in rows] if project.groups else (),
        LEVEL / policy.get("candidates", {"max": 1})["max"],
    )


def _values(measure: str, repeats: Sequence[Sequence[int]]) -> list[float]:
    """(Q,): the means over the repeats of a list."""
    columns = zip(*repeats, strict=True)
    return [math.fsum(_value(measure, rank) for rank in ranks) / len(ranks) for ranks in columns]


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

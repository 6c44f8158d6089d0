"""The whole gate command on made projects, or on the gated system's lists, damaged on purpose."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.made_projects import (
    COMMANDS,
    GATE,
    HIT,
    LEVEL,
    NAME,
    RR,
    TOLERANCE,
    UPDATE,
    CaseOutcome,
    Checks,
    Lists,
    MadeCase,
    SlowCheck,
    decide_family,
    judge_command,
    make_cases,
    write_dataset,
    write_experiment,
)
from fusion_bench.ranking.final_lists import make_final_lists
from fusion_bench.util.worker_processes import WorkerProcess

#: The module whose ``main`` runs a command; the gate, which lies below, names it only.
COMMAND_LINE = "fusion_bench.cli"


def run_commands(
    commands: Sequence[tuple[Path, Sequence[str]]], process: WorkerProcess
) -> list[int]:
    """Run ``fusion-bench`` with the arguments of each command, in its folder.

    Args:
        commands: The folder and the arguments of each.
        process: Runs them; the first one takes a second longer, for what is imported.

    Returns:
        The exit codes.

    Raises:
        FusionBenchError: The process ended before the last command.
    """
    codes: list[int] = []
    for folder, arguments in commands:
        try:
            codes.append(process.submit(_run_command, str(folder), list(arguments)).result())
        except BrokenExecutor as error:
            raise FusionBenchError(
                f"self-test: {len(codes)} of {len(commands)} commands ended, then: {error}"
            ) from None
    return codes


def _run_command(folder: str, arguments: list[str]) -> int:
    """The exit code of one command, whose output is dropped."""
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = import_module(COMMAND_LINE).main(arguments)
        except SystemExit as end:
            code = end.code
    return int(code or 0)


#: Documents of a list that are kept.
DEPTH = 100
#: Every so many-th query is damaged.
EVERY = 3
#: Fewer queries can show no fall with certainty.
LEAST_QUERIES = 40
#: Groups beyond this number are left out, to save time.
MOST_GROUPS = 150
#: The tolerance of every check, whatever the experiment allows.
MAX_DROP = 0.01


def run_damaged_lists(inputs: GateInputs) -> Iterator[CaseOutcome]:
    """Damage the final lists of the gated system on every collection, and run the whole gate.

    Every third group of queries loses all relevant documents from its lists, or has its lists
    turned upside down. What is gated against itself is unchanged, damaged lists fall, and the
    whole lists gated against damaged ones pass.
    """
    for task in inputs.load_collections():
        if len(set(task.runs.groups)) >= LEAST_QUERIES:
            yield from _damage_collection(task, inputs)


def _damage_collection(task: EvaluationSet, inputs: GateInputs) -> list[CaseOutcome]:
    by_query = dict(zip(task.runs.queries, task.runs.groups, strict=True))
    groups = sorted(set(by_query.values()))[:MOST_GROUPS]
    chosen = set(groups[::EVERY])
    tried = set(groups)
    kept = {query: group for query, group in by_query.items() if group in tried}
    lists = {
        query: documents for query, documents in _final_lists(task, inputs).items() if query in kept
    }
    damaged = {query for query, group in kept.items() if group in chosen}
    with (
        tempfile.TemporaryDirectory(prefix="fusion-bench-self-test-") as place,
        WorkerProcess() as process,
    ):
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        for folder in (whole, broken):
            _write_lists(folder, task, lists, kept, damaged)
        policy = {"checks": {measure: {"max_drop": MAX_DROP} for measure in inputs.policy.checks}}
        write_experiment(whole, "whole", policy)
        write_experiment(broken, "removed", policy)
        run_commands([(whole, UPDATE), (broken, UPDATE)], process)
        outcomes = []
        for title, folder, name in (
            ("identical lists", whole, "whole"),
            ("relevant documents removed", whole, "removed"),
            ("lists turned upside down", whole, "demoted"),
            ("whole lists against damaged ones", broken, "whole"),
        ):
            write_experiment(folder, name, policy)
            [code] = run_commands([(folder, GATE)], process)
            find = partial(_find_faults, folder, name, code, damaged)
            outcomes.append(judge_command(f"{task.dataset.name}: {title}", folder, code, find))
        return outcomes


def _final_lists(task: EvaluationSet, inputs: GateInputs) -> Lists:
    system = task.fit_system(inputs.candidate)
    run = make_final_lists(system, task.runs, task.dataset.spaces).to_run().to_dict()
    return {query: list(documents)[:DEPTH] for query, documents in run.items()}


def _write_lists(
    folder: Path,
    task: EvaluationSet,
    lists: Lists,
    groups: Mapping[str, str],
    damaged: set[str],
) -> None:
    """Write the dataset with the whole lists and the damaged ones."""
    grades = task.dataset.qrels.to_dict()
    removed, demoted = dict(lists), dict(lists)
    for query in damaged & set(lists):
        documents = list(lists[query])
        relevant = {name for name, grade in grades[query].items() if grade > 0}
        removed[query] = [name for name in documents if name not in relevant] or ["none"]
        demoted[query] = documents[::-1]
    write_dataset(
        folder,
        queries={query: {"group": group} for query, group in groups.items()},
        grades=grades,
        lists={"whole": lists, "removed": removed, "demoted": demoted},
        binary_relevance=task.dataset.spec.binary_relevance,
    )


def _find_faults(
    folder: Path, name: str, code: int, damaged: set[str], checks: Checks
) -> Iterator[str]:
    accepted = {"pass", "pass on these queries", "unchanged"}
    if folder.name == name:
        right, expected = {"unchanged"}, 0
    elif folder.name == "broken":
        right, expected = accepted, 0
    else:
        right, expected = {"fell", "regressed", "inconclusive", "unchanged"}, 1
    for check in checks:
        if check["status"] not in right:
            yield f"{check['measure']}: {check['status']}, which cannot be right"
        if folder.name == "broken" and check["difference"] < 0:
            yield f"{check['measure']}: a difference of {check['difference']:.6f}, and it is a gain"
    if code != expected:
        yield f"exit code {code}, and {expected} is right"
    if (folder.name, name) == ("whole", "removed"):
        baseline = folder / "reports" / "baselines" / f"{NAME}.json"
        [stored] = json.loads(baseline.read_text(encoding="utf-8"))["collections"]
        yield from _wrong_differences(checks, stored, damaged)


def _wrong_differences(
    checks: Checks, stored: Mapping[str, Any], damaged: set[str]
) -> Iterator[str]:
    """A list without a relevant document scores 0, so the fall is known from the stored values."""
    for check in checks:
        values = dict(zip(stored["queries"], stored["values"][check["measure"]], strict=True))
        fall = -sum(values[query] for query in damaged) / len(values)
        if abs(check["difference"] - fall) > TOLERANCE:
            yield f"{check['measure']}: a difference of {check['difference']:.6f}, not {fall:.6f}"


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

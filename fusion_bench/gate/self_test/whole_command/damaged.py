"""The gated system's own lists, damaged on purpose: the gate must say so, and by how much."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.ranking.final_lists import make_final_lists
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.whole_command.commands import run_commands
from fusion_bench.gate.self_test.whole_command.outcome import (
    TOLERANCE,
    CaseOutcome,
    Checks,
    judge_command,
)
from fusion_bench.gate.self_test.whole_command.project import (
    GATE,
    NAME,
    UPDATE,
    Lists,
    write_dataset,
    write_experiment,
)
from fusion_bench.util.processes.worker_process import WorkerProcess

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

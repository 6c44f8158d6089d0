"""The gated system's own lists, damaged on purpose: the gate must say so, and by how much."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.ranking.final_lists import make_final_lists
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.whole_command.commands import run_commands
from fusion_bench.gate.self_test.whole_command.outcome import TOLERANCE, CaseOutcome
from fusion_bench.util.atomic_files import write_atomic

NAME = "damaged"
EXPERIMENT = f"experiments/{NAME}.yaml"
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

Lists = Mapping[str, Sequence[str]]


def run_damaged_lists(inputs: GateInputs) -> Iterator[CaseOutcome]:
    """Damage the final lists of the gated system on every collection, and run the whole gate.

    A third of the queries (or groups) loses every relevant document from its list, or has the
    first half of its list moved behind the second. What is gated against itself is unchanged, a
    damaged list falls, and the whole list gated against a damaged one passes.
    """
    for task in inputs.load_collections():
        if len(set(task.runs.groups)) >= LEAST_QUERIES:
            yield from _damage_collection(task, inputs)


def _damage_collection(task: EvaluationSet, inputs: GateInputs) -> list[CaseOutcome]:
    by_query = dict(zip(task.runs.queries, task.runs.groups, strict=True))
    groups = sorted(set(by_query.values()))[:MOST_GROUPS]
    chosen = set(groups[::EVERY])
    kept = {query: group for query, group in by_query.items() if group in set(groups)}
    lists = {
        query: documents for query, documents in _final_lists(task, inputs).items() if query in kept
    }
    damaged = {query for query, group in kept.items() if group in chosen}
    with tempfile.TemporaryDirectory(prefix="fusion-bench-self-test-") as place:
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        for folder in (whole, broken):
            _write_dataset(folder, task, lists, kept, damaged)
        _gate_list(whole, "whole", inputs)
        _gate_list(broken, "removed", inputs)
        update = ["gate", EXPERIMENT, "--update", "--reason", "first baseline"]
        run_commands([(whole, update), (broken, update)])
        outcomes = []
        for title, folder, name in (
            ("identical lists", whole, "whole"),
            ("relevant documents removed", whole, "removed"),
            ("lists turned upside down", whole, "demoted"),
            ("whole lists against damaged ones", broken, "whole"),
        ):
            _gate_list(folder, name, inputs)
            [code] = run_commands([(folder, ["gate", EXPERIMENT])])
            outcomes.append(_judge(f"{task.dataset.name}: {title}", folder, name, code, damaged))
        return outcomes


def _final_lists(task: EvaluationSet, inputs: GateInputs) -> Lists:
    system = task.fit_system(inputs.candidate)
    run = make_final_lists(system, task.runs, task.dataset.spaces).to_run().to_dict()
    return {query: list(documents)[:DEPTH] for query, documents in run.items()}


def _write_dataset(
    folder: Path,
    task: EvaluationSet,
    lists: Lists,
    groups: Mapping[str, str],
    damaged: set[str],
) -> None:
    grades = task.dataset.qrels.to_dict()
    removed, demoted = dict(lists), dict(lists)
    for query in damaged & set(lists):
        documents = list(lists[query])
        relevant = {name for name, grade in grades[query].items() if grade > 0}
        removed[query] = [name for name in documents if name not in relevant] or ["none"]
        demoted[query] = documents[::-1]
    spec = {
        "name": NAME,
        "judgments": "complete",
        "binary_relevance": task.dataset.spec.binary_relevance,
        "qrels": "qrels.txt",
        "queries": "queries.jsonl",
        "runs": {name: {"path": f"{name}.trec"} for name in ("whole", "removed", "demoted")},
    }
    files = {
        "dataset.yaml": yaml.safe_dump(spec),
        "queries.jsonl": "".join(
            f"{json.dumps({'id': query, 'group': group})}\n" for query, group in groups.items()
        ),
        "qrels.txt": "".join(
            f"{query} 0 {name} {grade}\n"
            for query in groups
            for name, grade in grades[query].items()
        ),
        "whole.trec": _format_lists(lists),
        "removed.trec": _format_lists(removed),
        "demoted.trec": _format_lists(demoted),
    }
    for file, text in files.items():
        write_atomic(folder / "datasets" / NAME / file, text.encode())


def _format_lists(lists: Lists) -> str:
    return "".join(
        f"{query} Q0 {name} {rank} {len(documents) - rank + 1} made\n"
        for query, documents in lists.items()
        for rank, name in enumerate(documents, start=1)
    )


def _gate_list(folder: Path, name: str, inputs: GateInputs) -> None:
    measures = list(inputs.policy.checks)
    experiment = {
        "dataset": NAME,
        "measures": measures,
        "baseline": "gated",
        "systems": {"gated": {"runs": [name]}},
        "gate": {"checks": {measure: {"max_drop": MAX_DROP} for measure in measures}},
    }
    write_atomic(folder / EXPERIMENT, yaml.safe_dump(experiment, sort_keys=False).encode())


def _judge(title: str, folder: Path, name: str, code: int, damaged: set[str]) -> CaseOutcome:
    path = folder / "reports" / NAME / "gate.json"
    if not path.is_file():
        fault = f"no verdict was written; exit code {code}"
        return CaseOutcome(name=title, statuses=(), exit_code=code, faults=(fault,))
    checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    stored = json.loads((folder / f"reports/baselines/{NAME}.json").read_text(encoding="utf-8"))
    [values] = stored["collections"]
    faults = [*_find_faults(folder.name, name, code, checks)]
    if (folder.name, name) == ("whole", "removed"):
        faults += _wrong_differences(checks, values, damaged)
    statuses = tuple(check["status"] for check in checks)
    return CaseOutcome(name=title, statuses=statuses, exit_code=code, faults=tuple(faults))


def _find_faults(
    folder: str, name: str, code: int, checks: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    accepted = {"pass", "pass on these queries", "unchanged"}
    if folder == name:
        right, expected = {"unchanged"}, 0
    elif folder == "broken":
        right, expected = accepted, 0
    else:
        right, expected = {"fell", "regressed", "inconclusive", "unchanged"}, 1
    for check in checks:
        if check["status"] not in right:
            yield f"{check['measure']}: {check['status']}, which cannot be right"
        if folder == "broken" and check["difference"] < 0:
            yield f"{check['measure']}: a difference of {check['difference']:.6f}, and it is a gain"
    if code != expected:
        yield f"exit code {code}, and {expected} is right"


def _wrong_differences(
    checks: Sequence[Mapping[str, Any]], stored: Mapping[str, Any], damaged: set[str]
) -> Iterator[str]:
    """A list without a relevant document scores 0, so the fall is known from the stored values."""
    for check in checks:
        values = dict(zip(stored["queries"], stored["values"][check["measure"]], strict=True))
        fall = -sum(values[query] for query in damaged) / len(values)
        if abs(check["difference"] - fall) > TOLERANCE:
            yield f"{check['measure']}: a difference of {check['difference']:.6f}, not {fall:.6f}"

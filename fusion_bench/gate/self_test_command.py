"""The whole gate command on the gated system's lists, damaged on purpose.

``tests/gate/self_test`` runs it on made lists, whose right answers a second, slow rule computes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.config.plugins import plugin_words
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.ranking.final_lists import make_final_lists
from fusion_bench.util.files import write_atomic
from fusion_bench.util.json_text import encode_json_lines
from fusion_bench.util.worker_processes import WorkerProcess

#: Name of a made dataset, and of its experiment.
NAME = "made"
#: Its experiment, in the project's folder.
EXPERIMENT = f"experiments/{NAME}.yaml"
#: Writes the gated list as the first baseline.
UPDATE = ("gate", EXPERIMENT, "--update", "--reason", "first baseline")
#: Holds the gated list to the baseline.
GATE = ("gate", EXPERIMENT)

#: Query → documents, best first.
Lists: TypeAlias = Mapping[str, Sequence[str]]


def write_dataset(
    folder: Path,
    *,
    queries: Mapping[str, Mapping[str, str]],
    grades: Mapping[str, Mapping[str, int]],
    lists: Mapping[str, Lists],
    **options: object,
) -> None:
    """Write a dataset; its judgments are complete unless an option says otherwise.

    Args:
        folder: Of the project.
        queries: Query → its fields.
        grades: Query → document → grade; other queries than those of ``queries`` are left out.
        lists: The runs, by name.
        options: More of the ``dataset.yaml``.
    """
    spec = {
        "name": NAME,
        "judgments": "complete",
        "groups": "none",  # but those of the queries: made lists are equal by design
        "qrels": "qrels.txt",
        "queries": "queries.jsonl",
        "runs": {name: {"path": f"{name}.trec"} for name in lists},
        **options,
    }
    files = {
        "dataset.yaml": yaml.safe_dump(spec),
        "qrels.txt": Qrels.from_dict({query: grades[query] for query in queries}).to_trec(),
        **{f"{name}.trec": Run.from_dict(name, dict(run)).to_trec() for name, run in lists.items()},
    }
    contents = {file: text.encode() for file, text in files.items()}
    rows = ({"id": query, **fields} for query, fields in queries.items())
    contents["queries.jsonl"] = encode_json_lines(rows)
    for file, content in contents.items():
        write_atomic(folder / "datasets" / NAME / file, content)


def write_experiment(folder: Path, name: str, policy: Mapping[str, Any]) -> None:
    """Write the experiment: its gated system reads the list of that name."""
    experiment = {
        "dataset": NAME,
        "measures": list(policy["checks"]),
        "baseline": "gated",
        "systems": {"gated": {"runs": [name]}},
        "gate": {"system": "gated", **policy},
    }
    text = yaml.safe_dump(experiment, sort_keys=False)
    write_atomic(folder / EXPERIMENT, text.encode())


#: A printed number may differ from the right one by this much.
TOLERANCE = 1e-9

#: The checks of a ``gate.json``.
Checks: TypeAlias = Sequence[Mapping[str, Any]]


class CaseOutcome(StoredRecord):
    """One case.

    Attributes:
        name: What was tried.
        statuses: Of every check, in the order of the checks.
        exit_code: Of the command.
        faults: What was wrong; empty = all as it must be.
    """

    name: str
    statuses: tuple[str, ...]
    exit_code: int
    faults: tuple[str, ...]


def check_command(
    name: str, folder: Path, code: int, find_faults: Callable[[Checks], Iterable[str]]
) -> CaseOutcome:
    """The outcome of a gate command that has run in a project's folder.

    Args:
        name: What was tried.
        folder: Of the project.
        code: The exit code.
        find_faults: What is wrong with the checks, and with the exit code.
    """
    path = folder / "reports" / NAME / "gate.json"
    if not path.is_file():
        fault = f"no verdict was written; exit code {code}"
        return CaseOutcome(name=name, statuses=(), exit_code=code, faults=(fault,))
    checks: Checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    statuses = tuple(check["status"] for check in checks)
    return CaseOutcome(
        name=name, statuses=statuses, exit_code=code, faults=tuple(find_faults(checks))
    )


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
    plugins = plugin_words(are_absolute=True)
    for folder, arguments in commands:
        try:
            codes.append(process.submit(_run_command, str(folder), [*arguments, *plugins]).result())
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


#: Documents of a list that is damaged.
KEPT = 100
#: Every so many-th query is damaged.
EVERY = 3
#: Fewer queries can show no fall with certainty.
LEAST_QUERIES = 40
#: Groups beyond this number are left out, to save time.
MOST_GROUPS = 60
#: The tolerance of every check, whatever the experiment allows.
MAX_DROP = 0.01


def run_damaged_lists(inputs: GateInputs) -> Iterator[CaseOutcome]:
    """Damage the final lists of the gated system on every collection, and run the whole gate.

    Every third group of queries loses all relevant documents from its lists. Lists against
    themselves are unchanged, damaged lists regress, and with both sides swapped the lists pass,
    with the same difference.
    """
    for task in inputs.load_collections():
        if len(set(task.runs.groups)) >= LEAST_QUERIES:
            yield from _damage_collection(task, inputs)


def _damage_collection(task: EvaluationSet, inputs: GateInputs) -> list[CaseOutcome]:
    """Return the outcome of each case on one collection."""
    by_query = dict(zip(task.runs.queries, task.runs.groups, strict=True))
    groups = sorted(set(by_query.values()))[:MOST_GROUPS]
    tried, chosen = set(groups), set(groups[::EVERY])
    kept = {query: group for query, group in by_query.items() if group in tried}
    final = make_final_lists(task.fit_system(inputs.candidate), task.runs).to_run().to_dict()
    lists = {query: list(names)[:KEPT] for query, names in final.items() if query in kept}
    damaged = {query for query, group in kept.items() if group in chosen}
    with (
        tempfile.TemporaryDirectory(prefix="fusion-bench-self-test-") as place,
        WorkerProcess() as process,
    ):
        whole, broken = Path(place) / "whole", Path(place) / "broken"
        for folder in (whole, broken):
            grades = task.dataset.qrels.to_dict()
            removed = dict(lists)
            for query in damaged & set(lists):
                documents = list(lists[query])
                relevant = {name for name, grade in grades[query].items() if grade > 0}
                removed[query] = [name for name in documents if name not in relevant] or ["none"]
            write_dataset(
                folder,
                queries={query: {"group": group} for query, group in kept.items()},
                grades=grades,
                lists={"whole": lists, "removed": removed},
                binary_relevance=task.dataset.spec.binary_relevance,
            )
        measures = inputs.policy.checks or inputs.measures
        policy = {"checks": {measure: {"max_drop": MAX_DROP} for measure in measures}}
        write_experiment(whole, "whole", policy)
        write_experiment(broken, "removed", policy)
        run_commands([(whole, UPDATE), (broken, UPDATE)], process)
        outcomes = []
        for title, folder, name in (
            ("identical lists", whole, "whole"),
            ("relevant documents removed", whole, "removed"),
            ("both sides swapped", broken, "whole"),
        ):
            write_experiment(folder, name, policy)
            [code] = run_commands([(folder, GATE)], process)
            find = partial(_find_faults, folder, name, code, damaged)
            outcomes.append(check_command(f"{task.dataset.name}: {title}", folder, code, find))
        return outcomes


def _find_faults(
    folder: Path, name: str, code: int, damaged: set[str], checks: Checks
) -> Iterator[str]:
    if folder.name == name:
        right, expected = {"unchanged"}, 0
    elif folder.name == "broken":
        right, expected = {"pass", "unchanged"}, 0
    else:
        right, expected = {"regressed", "inconclusive", "unchanged"}, 1
    for check in checks:
        if check["status"] not in right:
            yield f"{check['measure']}: {check['status']}, which cannot be right"
    if code != expected:
        yield f"exit code {code}, and {expected} is right"
    if folder.name != name:
        baseline = folder.parent / "whole" / "reports" / "baselines" / f"{NAME}.json"
        [stored] = json.loads(baseline.read_text(encoding="utf-8"))["collections"]
        # A list without a relevant document scores 0, so the fall is known from these values.
        sign = -1 if name == "removed" else 1
        for check in checks:
            values = dict(zip(stored["queries"], stored["values"][check["measure"]], strict=True))
            fall = sign * sum(values[query] for query in damaged) / len(values)
            if abs(check["difference"] - fall) > TOLERANCE:
                difference = check["difference"]
                yield f"{check['measure']}: a difference of {difference:.6f}, not {fall:.6f}"

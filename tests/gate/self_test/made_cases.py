"""The whole gate command on made projects, whose right answers are stated beside them.

A slow rule, which shares no function with the gate, computes them in the tests; its formulas and
their sources stand in docs/studies/statistics.md.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from fusion_bench.gate.self_test_command import (
    GATE,
    TOLERANCE,
    UPDATE,
    CaseOutcome,
    Checks,
    Lists,
    check_command,
    run_commands,
    write_dataset,
    write_experiment,
)
from fusion_bench.util.worker_processes import WorkerProcess

#: Documents of a list.
DEPTH = 20


@dataclass(frozen=True)
class MadeProject:
    """One relevant document a query, and where each list has it.

    Attributes:
        lists: Name → repeats of the list, each (Q,): the document's rank, 1 to 10; 0 = it is not
            there.
        policy: The experiment's ``gate:`` key.
        groups: (Q,): the group of each query; empty = every query alone.
        types: (Q,): the type of each query; empty = none has one.
        judgments: Of the ``dataset.yaml``.
        judged: The list whose other documents are judged not relevant; empty = no list's are.
    """

    lists: Mapping[str, Sequence[Sequence[int]]]
    policy: Mapping[str, Any]
    groups: Sequence[str] = ()
    types: Sequence[str] = ()
    judgments: str = "complete"
    judged: str = ""

    def write(self, folder: Path, name: str, *, is_alone: bool = False) -> None:
        """Write the dataset, and the experiment that gates a list, or its first repeat alone."""
        queries = [f"q{i}" for i in range(len(next(iter(self.lists.values()))[0]))]
        columns = {"group": self.groups, "type": self.types}
        rest = {f"{self.judged}{rank}": 0 for rank in range(1, DEPTH + 1) if self.judged}
        repeats = "1" if is_alone else "*"
        write_dataset(
            folder,
            queries={
                query: {key: values[i] for key, values in columns.items() if values}
                for i, query in enumerate(queries)
            },
            grades={query: {"relevant": 1, **rest} for query in queries},
            lists={
                f"{name}-{number}": _make_lists(name, ranks)
                for name, every in self.lists.items()
                for number, ranks in enumerate(every, 1)
            },
            judgments=self.judgments,
            runs={name: {"path": f"{name}-{repeats}.trec"} for name in self.lists},
        )
        write_experiment(folder, name, self.policy)


def _make_lists(name: str, ranks: Sequence[int]) -> Lists:
    return {
        f"q{query}": [
            "relevant" if rank == place else f"{name}{rank}" for rank in range(1, DEPTH + 1)
        ]
        for query, place in enumerate(ranks)
    }


#: The cases; the file says what its keys mean.
STATED = Path(__file__).with_name("cases.yaml")
#: What is gated, with which command: a list, or the first of its repeats.
STEPS = (("before", "update"), ("after", "gate"))
COMMANDS = {"update": UPDATE, "alone": UPDATE, "gate": GATE}


@dataclass(frozen=True)
class MadeCase:
    """A project, and what the answer must be.

    Attributes:
        name: What is tried.
        project: The lists and the policy.
        steps: The list that is gated, and a key of :data:`COMMANDS`, one after the other; the last
            one is judged.
        exit_code: The only right exit code.
        checks: Of each check its right ``status`` and ``difference``.
    """

    name: str
    project: MadeProject
    steps: Sequence[Sequence[str]] = STEPS
    exit_code: int = 0
    checks: Sequence[Mapping[str, Any]] = ()


def make_cases() -> Iterator[MadeCase]:
    for entry in yaml.safe_load(STATED.read_text(encoding="utf-8")):
        yield _read_case(**entry)


def _read_case(
    *,
    name: str,
    lists: Mapping[str, Sequence[str]],
    policy: Mapping[str, Any],
    groups: str = "",
    types: str = "",
    steps: Sequence[Sequence[str]] = STEPS,
    right: Mapping[str, Any] = MappingProxyType({}),
    **judging: str,
) -> MadeCase:
    ranks = {key: [[*map(int, _expand(each))] for each in every] for key, every in lists.items()}
    project = MadeProject(ranks, policy, _expand(groups), _expand(types), **judging)
    return MadeCase(name, project, steps, **right)


def _expand(text: str) -> list[str]:
    """``1*2 0*1`` → 1, 1, 0."""
    pairs = (part.split("*") for part in text.split())
    return [value for value, count in pairs for _ in range(int(count))]


def run_cases() -> Iterator[CaseOutcome]:
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
    return check_command(case.name, folder, code, partial(find_faults, case, code))


def find_faults(case: MadeCase, code: int, checks: Checks) -> Iterator[str]:
    """What is wrong with the answer of a command.

    Args:
        case: What was tried.
        code: The exit code.
        checks: The records of the checks: ``measure``, ``reference``, ``status``, ``difference``.
    """
    if len(case.checks) != len(checks):
        yield f"{len(checks)} checks, and {len(case.checks)} are right"
    for check, right in zip(checks, case.checks, strict=False):
        name = f"{check['measure']} ({check['reference']})"
        if check["status"] != right["status"]:
            yield f"{name}: {check['status']}, and {right['status']} is right"
        difference, wanted = check["difference"], right["difference"]
        if abs(difference - wanted) > TOLERANCE:
            yield f"{name}: a difference of {difference:.6f}, not {wanted:.6f}"
    if code != case.exit_code:
        yield f"exit code {code}, and {case.exit_code} is right"

"""Made projects with their right answers, which a slow rule without any shared function gives.

The self-test compares what the whole command answers with this. The formulas and their sources
stand in docs/statistics.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.util.files import write_atomic

#: Name of a made dataset, and of its experiment.
NAME = "made"
#: Its experiment, in the project's folder.
EXPERIMENT = f"experiments/{NAME}.yaml"
#: Writes the gated list as the first baseline.
UPDATE = ("gate", EXPERIMENT, "--update", "--reason", "first baseline")
#: Holds the gated list to the baseline.
GATE = ("gate", EXPERIMENT)
#: Documents of a list.
DEPTH = 10

#: Query → documents, best first.
Lists: TypeAlias = Mapping[str, Sequence[str]]


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
        "queries.jsonl": "".join(
            f"{json.dumps({'id': query, **fields})}\n" for query, fields in queries.items()
        ),
        "qrels.txt": "".join(
            f"{query} 0 {name} {grade}\n"
            for query in queries
            for name, grade in grades[query].items()
        ),
        **{f"{name}.trec": _format_lists(run) for name, run in lists.items()},
    }
    for file, text in files.items():
        write_atomic(folder / "datasets" / NAME / file, text.encode())


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


def _make_lists(name: str, ranks: Sequence[int]) -> Lists:
    return {
        f"q{query}": [
            "relevant" if rank == place else f"{name}{rank}" for rank in range(1, DEPTH + 1)
        ]
        for query, place in enumerate(ranks)
    }


def _format_lists(lists: Lists) -> str:
    return "".join(
        f"{query} Q0 {name} {rank} {len(documents) - rank + 1} made\n"
        for query, documents in lists.items()
        for rank, name in enumerate(documents, start=1)
    )


RR, HIT = "RR@10", "Success@5"
#: The cases; the file says what its keys mean.
STATED = files(__package__) / "cases.yaml"
#: What is gated, with which command: a list, or the first of its repeats.
STEPS = (("before", "update"), ("after", "gate"))
COMMANDS = {"update": UPDATE, "alone": UPDATE, "gate": GATE}


@dataclass(frozen=True)
class MadeCase:
    """A project, and what the answer must be whatever the rule's formula says.

    Attributes:
        name: What is tried.
        project: The lists and the policy.
        steps: The list that is gated, and a key of :data:`COMMANDS`, one after the other; the last
            one is judged.
        exit_code: The only right exit code; None = the slow rule says.
        statuses: The only right ones, in the order of the checks; empty = the slow rule says.
        never: Statuses that no check may have.
    """

    name: str
    project: MadeProject
    steps: Sequence[Sequence[str]] = STEPS
    exit_code: int | None = None
    statuses: Sequence[str] = ()
    never: Sequence[str] = ()


def make_cases() -> Iterator[MadeCase]:
    """Every case."""
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


def judge_command(
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


#: Level of every test and of both bounds.
LEVEL = 0.05
#: All sign flips are listed up to this many changed groups.
MOST_LISTED = 16
#: Bets of the betting bound, as shares of the greatest.
BETS = (1.0, 0.9, 0.8, 0.5, 0.25, 0.1, 0.05, 0.025)
#: Sums closer than this are equal.
TINY = 1e-12


@dataclass(frozen=True)
class SlowCheck:
    """One check of a family.

    Attributes:
        differences: (Q,): candidate − baseline, none below −1.
        max_drop: m.
        groups: (Q,): the group of each query; empty = every query alone.
        level: Of every test and of both bounds.
    """

    differences: Sequence[float]
    max_drop: float
    groups: Sequence[str] = ()
    level: float = LEVEL

    @property
    def mean(self) -> float:
        """Of the differences."""
        return math.fsum(self.differences) / len(self.differences)

    @property
    def members(self) -> list[list[float]]:
        """The differences of each group."""
        names = self.groups or range(len(self.differences))
        members: dict[object, list[float]] = {}
        for name, value in zip(names, self.differences, strict=True):
            members.setdefault(name, []).append(value)
        return [*members.values()]

    @property
    def p_fell(self) -> float:
        """Share of the sign flips whose sum is at most the observed one.

        1 where the mean did not fall below −m, because then the test decides nothing.
        """
        changed = [total for values in self.members if (total := math.fsum(values))]
        if self.mean >= -self.max_drop:
            return 1.0
        if max(changed) < 0:  # every other flip has a greater sum
            return 0.5 ** len(changed)
        if len(changed) > MOST_LISTED:
            raise ValueError(f"at most {MOST_LISTED} changed groups can be listed")
        observed = math.fsum(changed)
        sums = [
            math.fsum(value * sign for value, sign in zip(changed, signs, strict=True))
            for signs in product((1, -1), repeat=len(changed))
        ]
        return sum(total <= observed + TINY for total in sums) / len(sums)

    @property
    def standard_error(self) -> float:
        """Of the mean; the mean took a share of each group's variance, which is given back."""
        queries = len(self.differences)
        residuals = [(len(v), math.fsum(v) - len(v) * self.mean) for v in self.members]
        parts = (residual**2 / (1 - size / queries) for size, residual in residuals)
        return math.sqrt(math.fsum(parts)) / queries

    @property
    def freedom(self) -> float:
        """2·E[V]² ÷ Var[V] of the squared standard error V, were the queries independent."""
        sizes, queries = [len(values) for values in self.members], len(self.differences)
        if min(sizes) == max(sizes):
            return len(sizes) - 1
        weights = [1 / (1 - size / queries) for size in sizes]
        covariances = {
            (i, j): (size if i == j else 0) - size * other / queries
            for i, size in enumerate(sizes)
            for j, other in enumerate(sizes)
        }
        mean = math.fsum(weight * covariances[i, i] for i, weight in enumerate(weights))
        products = (weights[i] * weights[j] * c**2 for (i, j), c in covariances.items())
        return mean**2 / math.fsum(products)

    @property
    def p_regressed(self) -> float:
        """One-sided t test of "the mean is at least −m"."""
        from scipy.special import stdtr  # late, as it is slow

        gap = self.mean + self.max_drop
        if not self.standard_error:
            return 0.0 if gap < 0 else 1.0
        return float(stdtr(self.freedom, gap / self.standard_error))

    @property
    def t_bound(self) -> float:
        """One-sided lower bound of the mean by Student's t."""
        return self.mean - self._quantile * self.standard_error

    @property
    def _quantile(self) -> float:
        from scipy.special import stdtrit  # late, as it is slow

        return float(stdtrit(self.freedom, 1 - self.level))

    @property
    def is_bet_won(self) -> bool:
        """Whether the betting bound is above −m: the mean capital against −m reaches 1/α."""
        mean_size = len(self.differences) / len(self.members)
        values = [math.fsum(group) / mean_size for group in self.members]
        reach = max(map(len, self.members)) / mean_size
        capitals = []
        for share in BETS:
            bet = share / (reach - self.max_drop)
            capitals.append(math.prod(1 + bet * (value + self.max_drop) for value in values))
        return math.fsum(capitals) / len(capitals) >= 1 / self.level

    @property
    def false_pass_rate(self) -> float | None:
        """Chance that the t bound passes at a true drop of m, of queries drawn again.

        None where queries are grouped, or more than one difference is not 0: then no formula has
        it. Of n queries k differ, and j of those drawn.
        """
        n, different = len(self.differences), [d for d in self.differences if d]
        if self.groups or len(set(different)) != 1:
            return None
        k, step, quantile, rate = len(different), different[0], self._quantile, 0.0
        for j in range(n + 1):
            error = abs(step) * math.sqrt(j * (n - j) / (n - 1)) / n
            if step * (j - k) / n > quantile * error:
                rate += math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j)
        return rate

    def decide(self, p_fell: float, p_regressed: float) -> str:
        """The status, from p-values adjusted over the family."""
        if not any(self.differences):
            return "unchanged"
        if self.mean < -self.max_drop - TINY and p_fell <= self.level:
            return "regressed" if p_regressed <= self.level else "fell"
        if self.t_bound > -self.max_drop:
            return "pass" if self.is_bet_won else "pass on these queries"
        return "inconclusive"


def decide_family(checks: Sequence[SlowCheck]) -> list[str]:
    """The status of every check of one run."""
    fell = adjust_slowly([check.p_fell for check in checks])
    regressed = adjust_slowly([check.p_regressed for check in checks])
    return [check.decide(*p) for check, *p in zip(checks, fell, regressed, strict=True)]


def adjust_slowly(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values."""
    adjusted = []
    for p in p_values:
        smaller = sorted(other for other in p_values if other <= p)
        steps = ((len(p_values) - i) * value for i, value in enumerate(smaller))
        adjusted.append(min(1.0, max(steps)))
    return adjusted

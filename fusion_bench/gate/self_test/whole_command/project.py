"""Made projects: a dataset, its lists, and the experiment that gates one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from fusion_bench.util.files.atomic_files import write_atomic

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

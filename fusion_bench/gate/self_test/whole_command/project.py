"""Made projects: a dataset, its lists, and the experiment that gates one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        before: (Q,): its rank in the baseline's list, 1 to 10; 0 = it is not there.
        after: (Q,): its rank in the candidate's list.
        groups: (Q,): the group of each query; empty = every query alone.
        policy: The experiment's ``gate:`` key.
    """

    before: Sequence[int]
    after: Sequence[int]
    policy: Mapping[str, Any]
    groups: Sequence[str] = field(default=())

    def write(self, folder: Path) -> None:
        """Write the dataset, and the experiment that gates the baseline's list."""
        queries = [f"q{i}" for i in range(len(self.before))]
        groups: Sequence[str | None] = self.groups or [None] * len(queries)
        write_dataset(
            folder,
            groups=dict(zip(queries, groups, strict=True)),
            grades={query: {"relevant": 1} for query in queries},
            lists={"before": _make_lists(self.before), "after": _make_lists(self.after)},
        )
        self.gate_list(folder, "before")

    def gate_list(self, folder: Path, name: str) -> None:
        """Write the experiment: its gated system reads one list."""
        write_experiment(folder, name, self.policy)


def write_dataset(
    folder: Path,
    *,
    groups: Mapping[str, str | None],
    grades: Mapping[str, Mapping[str, int]],
    lists: Mapping[str, Lists],
    **options: object,
) -> None:
    """Write a dataset whose judgments are complete.

    Args:
        folder: Of the project.
        groups: Query → its group; None = alone.
        grades: Query → document → grade; other queries than those of ``groups`` are left out.
        lists: The runs, by name.
        options: More of the ``dataset.yaml``.
    """
    queries = (
        {"id": query, **({} if group is None else {"group": group})}
        for query, group in groups.items()
    )
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
        "queries.jsonl": "".join(f"{json.dumps(query)}\n" for query in queries),
        "qrels.txt": "".join(
            f"{query} 0 {name} {grade}\n"
            for query in groups
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


def _make_lists(ranks: Sequence[int]) -> Lists:
    return {
        f"q{query}": [
            "relevant" if rank == place else f"other{rank}" for rank in range(1, DEPTH + 1)
        ]
        for query, place in enumerate(ranks)
    }


def _format_lists(lists: Lists) -> str:
    return "".join(
        f"{query} Q0 {name} {rank} {len(documents) - rank + 1} made\n"
        for query, documents in lists.items()
        for rank, name in enumerate(documents, start=1)
    )

"""A made project: two systems whose reciprocal ranks are given query by query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from fusion_bench.util.atomic_files import write_atomic

#: Name of the made dataset, and of its experiment.
NAME = "made"
#: Documents of a list.
DEPTH = 10


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
        queries = [
            {"id": f"q{i}", **({"group": self.groups[i]} if self.groups else {})}
            for i in range(len(self.before))
        ]
        spec = {
            "name": NAME,
            "judgments": "complete",
            "qrels": "qrels.txt",
            "queries": "queries.jsonl",
            "runs": {name: {"path": f"{name}.trec"} for name in ("before", "after")},
        }
        files = {
            "dataset.yaml": yaml.safe_dump(spec),
            "queries.jsonl": "".join(f"{json.dumps(query)}\n" for query in queries),
            "qrels.txt": "".join(f"q{i} 0 relevant 1\n" for i in range(len(self.before))),
            "before.trec": _format_lists(self.before),
            "after.trec": _format_lists(self.after),
        }
        for name, text in files.items():
            write_atomic(folder / "datasets" / NAME / name, text.encode())
        self.gate_list(folder, "before")

    def gate_list(self, folder: Path, name: str) -> None:
        """Write the experiment: its gated system reads one list."""
        experiment = {
            "dataset": NAME,
            "measures": list(self.policy["checks"]),
            "baseline": "gated",
            "systems": {"gated": {"runs": [name]}},
            "gate": {"system": "gated", **self.policy},
        }
        text = yaml.safe_dump(experiment, sort_keys=False)
        write_atomic(folder / "experiments" / f"{NAME}.yaml", text.encode())


def _format_lists(ranks: Sequence[int]) -> str:
    lines = []
    for query, place in enumerate(ranks):
        for rank in range(1, DEPTH + 1):
            document = "relevant" if rank == place else f"other{rank}"
            lines.append(f"q{query} Q0 {document} {rank} {DEPTH + 1 - rank} made\n")
    return "".join(lines)

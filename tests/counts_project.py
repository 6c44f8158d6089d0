"""Lists with 3, 2 and 1 files, whose values follow from the rank of the one relevant document."""

from collections.abc import Sequence
from pathlib import Path

#: Rank of the relevant document: of each list by trial, of each trial by query; 0 = not found.
RANKS: dict[str, tuple[tuple[int, ...], ...]] = {
    "a": ((1, 2, 1, 3, 1, 2), (2, 2, 4, 3, 2, 5), (4, 3, 4, 5, 2, 0)),
    "b": ((1, 1, 2, 1, 1, 2), (3, 4, 3, 2, 5, 2)),
    "c": ((2, 1, 3, 2, 2, 4),),
}
QUERIES = range(len(RANKS["a"][0]))

EXPERIMENT = """\
dataset: counts
measures: [RR@10]
baseline: b
systems:
  a: {runs: [a]}
  b: {runs: [b]}
  c: {runs: [c]}
  ab: {runs: [a, b]}
  abc: {runs: [a, b, c]}
"""


def make(root: Path, experiment: str = EXPERIMENT, **ranks: Sequence[Sequence[int]]) -> Path:
    """Write the dataset and ``experiments/e.yaml``; its ``dataset.yaml``.

    Args:
        root: Where to write.
        experiment: The experiment.
        ranks: By list, where they are others than ``RANKS``.
    """
    folder = root / "datasets/counts"
    for path in (folder, root / "experiments"):
        path.mkdir(parents=True, exist_ok=True)
    (root / "experiments/e.yaml").write_text(experiment, encoding="utf-8")
    judged = [f"q{q} 0 r{q} 1\nq{q} 0 x1 0\n" for q in QUERIES]
    (folder / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    lists = {**RANKS, **ranks}
    lines = ["name: counts", "qrels: qrels.txt", "runs:"]
    lines += [f'  {name}: {{path: "{name}-*.trec"}}' for name in lists]
    (folder / "dataset.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, trials in lists.items():
        for number, places in enumerate(trials, 1):
            write_list(folder / f"{name}-{number}.trec", places)
    return folder / "dataset.yaml"


def write_list(path: Path, places: Sequence[int]) -> None:
    """Five documents of each query, the relevant one at its rank."""
    rows = []
    for q, place in enumerate(places):
        documents = [f"x{n}" for n in range(1, 6)]
        if place:
            documents.insert(place - 1, f"r{q}")
        ranked = enumerate(documents[:5], 1)
        rows += [f"q{q} Q0 {document} {n} {10 - n} s\n" for n, document in ranked]
    path.write_text("".join(rows), encoding="utf-8")

"""The gate's dataset with a list that was made several times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.gate.cases import EXPERIMENT, QUERIES, make_project, run_lines
from tests.tiny import edit


def make_trials(
    root: Path, *places: dict[int, int], checks: str = "RR@10: {max_drop: 0.01}"
) -> Path:
    """Write the project; list ``a`` has a trial for each mapping of queries to places.

    Args:
        root: The folder.
        places: Of each trial the place of each query's relevant document.
        checks: Of the gate.
    """
    make_project(root)
    edit(root, "datasets/mine/dataset.yaml", "path: a.trec", 'path: "a-*.trec"')
    edit(
        root,
        EXPERIMENT,
        "    RR@10: {max_drop: 0.01}\n    nDCG@10: {max_drop: 0.01}",
        f"    {checks}",
    )
    edit(root, EXPERIMENT, "  slices: [local]\n", "")
    (root / "datasets/mine/a.trec").unlink()
    write_trials(root, *places)
    return root


def write_trials(root: Path, *places: dict[int, int]) -> None:
    """Write the trials of list ``a`` in place of those that are there."""
    folder = root / "datasets/mine"
    for path in folder.glob("a-*.trec"):
        path.unlink()
    for number, place in enumerate(places, 1):
        (folder / f"a-{number}.trec").write_text(run_lines(place, "a"), encoding="utf-8")


def draw_places(trials: int, *, share: float = 0.3, seed: int = 0) -> list[dict[int, int]]:
    """Trials that put the relevant document second on a share of the queries, at random."""
    rng = np.random.default_rng(seed)
    return [
        {q: 2 if late else 1 for q, late in enumerate((rng.random(QUERIES) < share).tolist())}
        for _ in range(trials)
    ]


def move_places(*shares: float) -> list[dict[int, int]]:
    """Trials that put it second on the first so many queries: all queries of a trial together."""
    return [{q: 2 if q < share * QUERIES else 1 for q in range(QUERIES)} for share in shares]

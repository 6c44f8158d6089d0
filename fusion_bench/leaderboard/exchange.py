"""Leaderboards of others: read, join, recompute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fusion_bench.config.json_records import read_stored
from fusion_bench.errors import DataError
from fusion_bench.leaderboard.evaluate import evaluate_row, load_material
from fusion_bench.leaderboard.records import Cell, Leaderboard, StoredCollection

#: Values that differ by more are different.
TOLERANCE = 1e-12
#: Cells that are computed again.
VERIFIED = 20


def read_leaderboard(path: Path) -> Leaderboard:
    """Read and check a ``leaderboard.json``.

    Raises:
        DataError: No leaderboard of this format, or a cell whose digest is not that of its content.
    """
    leaderboard = read_stored(
        path, Leaderboard, what="leaderboard", remedy="run fusion-bench leaderboard again"
    )
    for each in leaderboard.collections:
        for cell in each.cells:
            if cell.digest != cell.content_digest:
                raise DataError(
                    f"{path}: {each.head.name}: {cell.row.name}: the digest is not that of the "
                    "cell, which was changed after it was computed"
                )
    return leaderboard


def merge(paths: Sequence[Path]) -> Leaderboard:
    """Join leaderboards; a cell that several have must be equal.

    Args:
        paths: Of at least two ``leaderboard.json``.

    Raises:
        DataError: There is one alone, one cannot be read, they are of different versions, or a
            cell differs.
    """
    if len(paths) < 2:
        raise DataError(f"{paths[0]}: one leaderboard alone cannot be joined: name two or more")
    known: dict[str, StoredCollection] = {}
    boards = [read_leaderboard(path) for path in paths]
    first = boards[0]
    clusters: dict[str, str] = {}
    for path, each in zip(paths, boards, strict=True):
        if (each.version, each.engine) != (first.version, first.engine):
            raise DataError(
                f"{path}: made by version {each.version} (numbers of engine {each.engine}), and "
                f"{paths[0]} by {first.version} ({first.engine}): run one of them again"
            )
        clusters |= each.clusters
        for collection in each.collections:
            name = collection.head.name
            rest = known.get(name)
            known[name] = collection if rest is None else _join(path, rest, collection)
    ordered = tuple(known[name] for name in sorted(known))
    return first.model_copy(update={"collections": ordered, "clusters": clusters})


def _join(path: Path, first: StoredCollection, second: StoredCollection) -> StoredCollection:
    name = first.head.name
    if first.head.fingerprint != second.head.fingerprint:
        raise DataError(f"{path}: {name}: the name of another collection: its data differ")
    cells = {cell.row.name: cell for cell in first.cells}
    for cell in second.cells:
        stored = cells.setdefault(cell.row.name, cell)
        if stored.digest != cell.digest:
            raise DataError(f"{path}: {name}: {cell.row.name}: differs from the same cell before")
    rows = dict.fromkeys([*(cell.row.name for cell in first.cells), *cells])
    listed = {row.name: row for row in (*second.head.rows, *first.head.rows)}
    head = first.head.model_copy(update={"rows": tuple(listed.values())})
    return StoredCollection(head=head, cells=tuple(cells[row] for row in rows))


def verify(leaderboard: Leaderboard, dataset: Path, *, seed: int = 0) -> dict[str, float]:
    """Compute random cells of a collection again.

    Args:
        leaderboard: As :func:`read_leaderboard` returns it.
        dataset: The ``dataset.yaml`` of one of its collections.
        seed: Of the choice of :data:`VERIFIED` cells.

    Returns:
        Row → the greatest difference between a stored value and the same computed here; 1 where
        the values are not of the same measures or queries.

    Raises:
        DataError: No collection has the data of the dataset, or that has no values.
    """
    material = load_material(dataset)
    found = next(
        (c for c in leaderboard.collections if c.head.fingerprint == material.fingerprint), None
    )
    if found is None:
        names = ", ".join(each.head.name for each in leaderboard.collections)
        raise DataError(f"{dataset}: its data are those of no collection here (known: {names})")
    cells = [cell for cell in found.cells if cell.values]
    if not cells:
        raise DataError(f"{dataset}: its collection has no cell with values to compute again")
    count = min(VERIFIED, len(cells))
    chosen = np.random.default_rng(seed).choice(len(cells), count, replace=False)
    return {
        cells[number].row.name: _greatest_difference(
            cells[number], evaluate_row(material, cells[number].row, found.head.budget)
        )
        for number in sorted(chosen)
    }


def _greatest_difference(stored: Cell, again: Cell) -> float:
    if stored.values.keys() != again.values.keys():
        return 1.0
    pairs = ((np.array(stored.values[key]), np.array(again.values[key])) for key in stored.values)
    return max(
        float(np.abs(a - b).max(initial=0.0)) if a.shape == b.shape else 1.0 for a, b in pairs
    )

"""Finish all rows of all collections; what is stored and still holds is not computed again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from benchmarks.studies.leaderboard.cells import HEAD, Budget, Cell, Row, write_record
from benchmarks.studies.leaderboard.evaluate import Material, finish_row, load_material
from benchmarks.studies.leaderboard.methods import Lists
from benchmarks.studies.leaderboard.rows import list_rows

#: Called with the collection, the finished cell and whether it was computed just now.
Report = Callable[[str, Cell, bool], None]
#: The rows of a collection with these lists.
Rows = Callable[[Lists], Sequence[Row]]


def run_collections(
    collections: Iterable[tuple[str, Path]],
    folder: Path,
    budget: Budget,
    *,
    jobs: int = 1,
    rows: Rows = list_rows,
    report: Report,
) -> Counter[str]:
    """Finish every row of every collection.

    Args:
        collections: Name and ``dataset.yaml`` of each.
        folder: Where the cells are stored, in a folder a collection.
        budget: Of tuned rows.
        jobs: Processes.
        rows: What is evaluated on these lists.
        report: Called after each row.

    Returns:
        How many rows were computed, reused and skipped.
    """
    counts: Counter[str] = Counter()
    for name, path in collections:
        for cell, is_new in _finish_collection(path, folder / name, budget, jobs, rows):
            counts["skipped" if cell.skipped else "computed" if is_new else "reused"] += 1
            report(name, cell, is_new)
    return counts


def _finish_collection(
    path: Path, folder: Path, budget: Budget, jobs: int, rows_of: Rows
) -> Iterator[tuple[Cell, bool]]:
    material = _material(path)
    rows = rows_of(material.lists)
    write_record(folder / HEAD, material.head(rows, budget))
    if jobs == 1:
        yield from (finish_row(material, row, budget, folder) for row in rows)
        return
    # A process each has one thread: together they use the processors once.
    os.environ["FUSION_BENCH_THREADS"] = "1"
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_finish_in_process, path, row, budget, folder) for row in rows]
        yield from (task.result() for task in tasks)


def _finish_in_process(path: Path, row: Row, budget: Budget, folder: Path) -> tuple[Cell, bool]:
    return finish_row(_material(path), row, budget, folder)


@lru_cache(maxsize=1)
def _material(path: Path) -> Material:
    """The collection that a process works on."""
    return load_material(path)

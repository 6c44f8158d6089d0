"""Finish all rows of all collections; what is stored and still holds is not computed again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from fusion_bench.leaderboard.evaluate import Material, finish_row, load_material
from fusion_bench.leaderboard.records import HEAD, Cell, SystemRow, TuningBudget, write_record
from fusion_bench.leaderboard.rows import Methods, list_rows
from fusion_bench.util.formatting import Progress, ignore_progress


def run_collections(
    paths: Sequence[Path],
    folder: Path,
    budget: TuningBudget,
    *,
    jobs: int = 1,
    methods: Methods = "all",
    progress: Progress = ignore_progress,
) -> Counter[str]:
    """Finish every row of every collection.

    Args:
        paths: The ``dataset.yaml`` of each.
        folder: Where the cells are stored, in a folder a collection.
        budget: Of tuned rows.
        jobs: Processes.
        methods: Which rows.
        progress: Called after each row.

    Returns:
        How many rows were computed, reused and skipped.
    """
    counts: Counter[str] = Counter()
    _material.cache_clear()  # the files may have changed, or a campaign may hold out queries now
    for path in paths:
        material = _material(path)
        name, rows = material.task.dataset.name, list_rows(material.lists, methods)
        write_record(folder / name / HEAD, material.head(rows, budget))
        finished = _finish_rows(path, rows, folder / name, budget, jobs)
        for number, (cell, is_new) in enumerate(finished, start=1):
            counts["skipped" if cell.skipped else "computed" if is_new else "reused"] += 1
            progress(f"{name}: {cell.row.name}", number, len(rows))
    return counts


def _finish_rows(
    path: Path, rows: Sequence[SystemRow], folder: Path, budget: TuningBudget, jobs: int
) -> Iterator[tuple[Cell, bool]]:
    if jobs == 1:
        yield from (finish_row(_material(path), row, budget, folder) for row in rows)
        return
    # A process each has one thread: together they use the processors once.
    os.environ["FUSION_BENCH_THREADS"] = "1"
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_finish_in_process, path, row, budget, folder) for row in rows]
        try:
            yield from (task.result() for task in as_completed(tasks))
        finally:  # what is interrupted ends with the rows that are being computed
            pool.shutdown(cancel_futures=True)


def _finish_in_process(
    path: Path, row: SystemRow, budget: TuningBudget, folder: Path
) -> tuple[Cell, bool]:
    return finish_row(_material(path), row, budget, folder)


@lru_cache(maxsize=1)
def _material(path: Path) -> Material:
    """The collection that a process works on."""
    return load_material(path)

"""Replay campaigns on the values of random settings: false ships, and power.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies.campaigns

Each cell is stored, so a run that was stopped continues where it was; ``--docs`` makes tables and
picture from what is stored.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.studies.campaigns.nulls import SKEWS, Scene
from benchmarks.studies.campaigns.pool import SETTINGS, Measure, load_pool
from benchmarks.studies.campaigns.power import DRAWS, QUERIES, check_detectable, measure_power
from benchmarks.studies.campaigns.real_command import run_real_campaigns
from benchmarks.studies.campaigns.results import (
    RESULTS,
    PowerResult,
    read_cells,
    read_power,
    read_real,
    read_tails,
    write_cells,
    write_power,
    write_real,
    write_tails,
)
from benchmarks.studies.campaigns.run import ASKS, CAMPAIGNS, list_nulls, run_cells
from benchmarks.studies.campaigns.table import format_tables, write_page
from benchmarks.studies.campaigns.tails import QUERIES as TAIL_QUERIES
from benchmarks.studies.campaigns.tails import measure_tails

#: Collections and measures of the nulls.
SCENES: Final[Sequence[tuple[str, Measure]]] = (
    ("jqara", "nDCG@10"),
    ("nfcorpus", "nDCG@10"),
    ("attack", "nDCG@10"),
    ("jqara", "RR@10"),
)
#: Where power is measured, and where campaigns go through the command; how many do.
POWER: Final = "jqara"
REAL_CAMPAIGNS: Final = 20
#: Held-out queries and asks at which the printed gain is checked.
CHECKS: Final = ((400, 1_000), (833, 100), (833, 1_000), (3_000, 1_000))
WORK: Final = Path(tempfile.gettempdir()) / "fusion-bench-campaigns"


def run_nulls(scenes: Sequence[Scene], campaigns: int, asks: int, folder: Path) -> Iterator[str]:
    """Run the nulls that are missing; a line after each."""
    cells = read_cells(folder)
    for data, null, make in list_nulls(scenes):
        if (data, null) in {(cell.data, cell.null) for cell in cells}:
            continue
        started = time.process_time()
        found = run_cells(data, null, make, campaigns, asks)
        cells += found
        write_cells(cells, folder)
        counts = ", ".join(f"{cell.proposer} {len(cell.first['campaign'])}" for cell in found)
        yield f"{data}, {null}: {counts}; {time.process_time() - started:.0f} CPU s"


def run_power(
    scenes: Sequence[Scene],
    queries: Sequence[int],
    checks: Sequence[tuple[int, int]],
    draws: int,
    folder: Path,
) -> None:
    """Measure power, and check what ``open`` prints, where that is not done."""
    if read_power(folder).rows:
        return
    rows = tuple(row for scene in scenes for row in measure_power(scene, queries, draws))
    detectable = tuple(check_detectable(scene, *each) for scene in scenes for each in checks)
    write_power(PowerResult(rows, detectable), folder)


def run_tails(queries: Sequence[int], folder: Path) -> None:
    """Compute the exact probabilities, where that is not done."""
    if not read_tails(folder):
        write_tails([measure_tails(skew, count) for skew in SKEWS for count in queries], folder)


def run_real(name: str, count: int, folder: Path) -> None:
    """Run the campaigns through the command that are missing; each is slow."""
    done = read_real(folder)
    for campaign in run_real_campaigns(name, count, first=len(done)):
        done.append(campaign)
        write_real(done, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.campaigns", description=__doc__
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--toy", action="store_true", help="a small made collection, a few seconds")
    mode.add_argument("--docs", action="store_true", help="only write the page again")
    parser.add_argument("--work", type=Path, default=WORK, help="stored rankings (%(default)s)")
    options = parser.parse_args(arguments)
    if options.toy:
        _run_toy()
        return
    if not options.docs:
        scenes = [Scene.prepare(load_pool(name, options.work, SETTINGS), m) for name, m in SCENES]
        run_tails(TAIL_QUERIES, RESULTS)
        jqara = [scene for scene in scenes if scene.pool.name == POWER]
        run_power(jqara, QUERIES, CHECKS, DRAWS, RESULTS)
        for line in run_nulls(scenes, CAMPAIGNS, ASKS, RESULTS):
            print(line, flush=True)
        run_real(POWER, REAL_CAMPAIGNS, RESULTS)
    write_page()


def _run_toy() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scene = Scene.prepare(load_pool("toy", folder, 60), "nDCG@10")
        run_tails((100,), folder)
        run_power([scene], (833,), ((833, 1_000),), 10, folder)
        for line in run_nulls([scene], 2, 50, folder):
            print(line, flush=True)
        write_real([*run_real_campaigns("toy", 2, queries=40, settings=20, asks=15)], folder)
        print("\n\n".join(format_tables(folder).values()))


if __name__ == "__main__":
    main()

"""Real collections as worlds: their queries or groups are drawn with replacement.

Rows are settings of two lists against RRF with k = 60: nine near ones (RRF with k = 10, 20 and 100
or with list weights .4 and .6; convex sums), or 29, of which some weigh one list .1 to .9.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np

from benchmarks.studies.choice_rules.grid import DEFAULT, RRF, SETTINGS, Grid, Setting, build_grid
from benchmarks.studies.choice_rules.pairs import load_pair
from benchmarks.studies.simulations.inference_cells import SIZES, Cell, draw_world
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import NOISE, FloatArray

NAMES: Final = ("jqara", "nfcorpus", "attack")
MEASURES: Final = ("nDCG@10", "RR@10")
NEAR: Final = (
    *(Setting(RRF, 5, k) for k in (10, 20, 100)),
    *(Setting(RRF, tenths, 60) for tenths in (4, 6)),
    *(Setting("mm", tenths) for tenths in (4, 5, 6)),
    Setting("tmm", 5),
)
FAR: Final = (
    *NEAR,
    *(Setting(RRF, 5, k) for k in (0, 1, 5, 40)),
    *(Setting(RRF, tenths, 60) for tenths in (1, 3, 7, 9)),
    *(Setting(RRF, tenths, 20) for tenths in (3, 7)),
    *(Setting("mm", tenths) for tenths in (1, 3, 7, 9)),
    *(Setting("tmm", tenths) for tenths in (3, 7)),
    *(Setting("z", tenths) for tenths in (4, 5, 6)),
    Setting("dbsf", 5),
)


def reciprocal_ranks(grid: Grid) -> FloatArray:
    """(T, Q): RR@10 of every setting."""
    queries = np.arange(len(grid.gains))[:, None]
    values = np.zeros(grid.top.shape[:2])
    for row, top in zip(values, grid.top, strict=True):
        found = grid.gains[queries, top] > 0
        row[:] = np.where(found.any(axis=1), 1 / (1 + found.argmax(axis=1)), 0.0)
    return values


def load_world(name: str) -> tuple[dict[str, FloatArray], np.ndarray]:
    """Values of every setting by measure, (T, Q), and the group code of each query."""
    pair = load_pair(name)
    grid = build_grid(pair.runs)
    codes = number_by_appearance(pair.runs.groups)[0]
    return {"nDCG@10": grid.evaluate(grid.gains), "RR@10": reciprocal_ranks(grid)}, codes


def list_worlds() -> Iterator[Cell]:
    """Every collection, measure, family and number of units, with its truth and as a null."""
    loaded = {name: load_world(name) for name in NAMES}
    for units, name, measure in product(SIZES, NAMES, MEASURES):
        measures, codes = loaded[name]
        values = measures[measure]
        for settings in (NEAR, FAR):
            places = [SETTINGS.index(each) for each in settings]
            rows = values[places] - values[SETTINGS.index(DEFAULT)]
            rows[np.abs(rows) < NOISE] = 0
            for flipped in (False, True):
                kind = f"{name} {measure}{', signs flipped' if flipped else ''}"
                draw = draw_world(rows, codes, units, flipped=flipped)
                yield Cell(kind, len(rows), units, draw)

"""The rows that reading options drop."""

from __future__ import annotations

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import GroupedRows, find_repeats, refuse_duplicates
from fusion_bench.data.rows.read_options import ReadOptions

#: What a list with a repeated document needs; other repeats are errors of judgments.
KEEP_BEST = "keep one row, or write 'on_duplicate: best_rank' beside its path in dataset.yaml"


def drop_rows(
    grouped: GroupedRows, values: FloatArray, order: IntArray | slice, read_options: ReadOptions
) -> tuple[IntArray | slice, int]:
    """The rows that the options keep, in order, and how many duplicates they drop."""
    if read_options.drop_zero_scores and not values.all():
        order = np.arange(len(values))[order]
        order = order[values[order] != 0]
    if read_options.on_duplicate == "error":
        refuse_duplicates(grouped, KEEP_BEST)
        return order, 0
    is_repeat = find_repeats(grouped, order)
    duplicates = int(is_repeat.sum())
    if duplicates:
        order = np.arange(len(values))[order][~is_repeat]
    return order, duplicates

"""Whether the rank column of a file agrees with its scores, seen in the first lists of the file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.rows.grouped_rows import number_by_appearance
from fusion_bench.data.rows.ids import CategoricalIds
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.file_bytes import read_head
from fusion_bench.io.file_layout import FileLayout
from fusion_bench.io.formats import find_distribution, read_raw_table
from fusion_bench.io.raw_table import RawTable

#: Bytes of a file that are looked at.
SAMPLE: Final = 1 << 17


class RankColumn(NamedTuple):
    """How the rank column of a file stands to its scores.

    Attributes:
        lists: Lists that were looked at: with different ranks and different scores.
        opposed: Those of them in which documents of better rank mostly have lower scores.
    """

    lists: int
    opposed: int


def compare_rank_column(path: Path, layout: FileLayout) -> RankColumn | None:
    """Compare ranks and scores of the first lists of a file.

    Args:
        path: A text file with one row a line.
        layout: How it is read.

    Returns:
        None where it has no rank column, no scores, or a form of which a part cannot be read, or
        where a temporary file cannot be written.
    """
    if not path.is_file() or find_distribution(path, layout) is not None:
        return None
    text = read_head(path, SAMPLE)
    if not text.strip():
        return None
    with suppress(FusionBenchError, OSError, ValueError), TemporaryDirectory() as folder:
        name = path.name.removesuffix(".gz").removesuffix(".GZ")
        sample = Path(folder) / name
        sample.write_text(text, encoding="utf-8")
        return _compare_columns(read_raw_table(sample, "run", has_ranks=True, layout=layout))
    return None


def _compare_columns(table: RawTable) -> RankColumn | None:
    if table.ranks is None or table.values is None or isinstance(table.queries, CategoricalIds):
        return None
    ranks = np.array([float(rank) for rank in table.ranks])
    scores = np.array([float(score) for score in table.values])
    query, names = number_by_appearance(table.queries)
    order = np.lexsort((ranks, query))
    same = np.diff(query[order]) == 0
    before, after = scores[order][:-1], scores[order][1:]
    rises = same & (after > before) & (np.diff(ranks[order]) > 0)
    falls = same & (after < before) & (np.diff(ranks[order]) > 0)
    steps = [np.bincount(query[order][1:][kind], minlength=len(names)) for kind in (rises, falls)]
    return RankColumn(int((steps[0] + steps[1] > 0).sum()), int((steps[0] > steps[1]).sum()))

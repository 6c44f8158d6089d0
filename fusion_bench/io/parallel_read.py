"""Several files read at once: on as many threads as there are cores, their ids coded together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from fusion_bench.data.packed_ids import Ids, code_together
from fusion_bench.errors import FusionBenchError
from fusion_bench.io import native
from fusion_bench.io._raw_table import Kind, Rows, read_rows

__all__ = ["read_together"]


def read_together(files: Sequence[tuple[Path, Kind]]) -> Iterator[Rows]:
    """The rows of each file, in order.

    Document ids that are packed are coded by one table for all files, so that nothing has to
    compare them again when the files are aligned.

    Raises:
        DataError: A file cannot be read; after the rows of those before it, as if they were read
            one by one.
    """
    found: list[Rows] = []
    failure: FusionBenchError | None = None
    with ThreadPoolExecutor(max(min(os.cpu_count() or 1, len(files)), 1)) as pool:
        waiting = [pool.submit(read_rows, path, kind) for path, kind in files]
        try:
            found.extend(future.result() for future in waiting)
        except FusionBenchError as error:
            failure = error
            pool.shutdown(cancel_futures=True)
    yield from _coded(found)
    if failure is not None:
        raise failure


def _coded(tables: list[Rows]) -> list[Rows]:
    packed = {n: rows.documents for n, rows in enumerate(tables) if isinstance(rows.documents, Ids)}
    if packed:
        ids = list(packed.values())
        coded = native.code_together(ids) if native.all_cells(ids) else code_together(ids)
        for n, documents in zip(packed, coded, strict=True):
            tables[n] = replace(tables[n], documents=documents)
    return tables

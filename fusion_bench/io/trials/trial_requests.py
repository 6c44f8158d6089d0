"""Which file of each list belongs to which trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusion_bench.io.cache.cached_loader import FileRequest


def later_requests(files: Sequence[FileRequest]) -> list[list[FileRequest]]:
    """For the second and each later trial, the files of the lists that have so many.

    Args:
        files: Of the first trial.
    """
    return [
        [
            replace(file, path=file.later_paths[t], later_paths=())
            for file in files
            if t < len(file.later_paths)
        ]
        for t in range(max((len(file.later_paths) for file in files), default=0))
    ]

"""Which file of each list belongs to which trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import DataError
from fusion_bench.io.cache.cached_loader import FileRequest
from fusion_bench.util.formatting import pluralize


def later_requests(files: Sequence[FileRequest], source: Source) -> list[list[FileRequest]]:
    """For the second and each later trial, the files of the lists that have several.

    Args:
        files: Of the first trial.
        source: The ``dataset.yaml``, for messages.

    Raises:
        DataError: Two lists have different numbers of trials, so that no file of the one belongs
            to a file of the other.
    """
    several = [file for file in files if file.later_paths]
    for file in several:
        first, count = len(several[0].later_paths) + 1, len(file.later_paths) + 1
        if count != first:
            raise DataError(
                f"{source.where((file.kind, file.name, 'path'))}: {pluralize(count, 'trial')}, but "
                f"{several[0].name!r} has {first}: trial 2 of a system reads the second file of "
                "each list, so all lists with several files need the same number"
            )
    return [
        [replace(file, path=file.later_paths[t], later_paths=()) for file in several]
        for t in range(len(several[0].later_paths) if several else 0)
    ]

"""The lists of a dataset, and of each of its later trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from fusion_bench.data.run import Run
from fusion_bench.io.cache.cached_loader import FileRequest
from fusion_bench.io.provenance import read_meta


def list_fields(
    lists: Iterable[tuple[FileRequest, Run]], judges: Mapping[str, FileRequest]
) -> dict[str, Any]:
    """The fields of a ``Dataset`` that say which lists it has.

    Args:
        lists: What was asked for, and the list.
        judges: Its other files, by key.

    Raises:
        DataError: The provenance of a rerank list is damaged, or that of another list.
    """
    pairs = [*lists]
    metas = {file.name: read_meta(file.path) for file, _ in pairs if file.kind == "rerank"}
    return {
        "runs": {run.name: run for file, run in pairs if file.kind == "runs"},
        "rerankers": {run.name: run for file, run in pairs if file.kind == "rerank"},
        "provenance": {name: meta for name, meta in metas.items() if meta is not None},
        "files": {**{file.key: file for file, _ in pairs}, **judges},
    }


def later_fields(
    lists: Sequence[tuple[FileRequest, Run]], count: int, judges: Mapping[str, FileRequest]
) -> Iterator[dict[str, Any]]:
    """The same fields for the second and each later trial.

    A list that has fewer files stands there with its first one, as lists of one file do.

    Args:
        lists: Those of the first trial, then those of the second that have so many files, ….
        count: How many belong to the first.
        judges: The other files, by key.
    """
    first = {file.key: (replace(file, later_paths=()), run) for file, run in lists[:count]}
    numbers = [len(file.later_paths) for file, _ in lists[:count]]
    later = iter(lists[count:])
    for t in range(max(numbers, default=0)):
        files = islice(later, sum(t < number for number in numbers))
        trial = {file.key: (file, run) for file, run in files}
        yield list_fields((first | trial).values(), judges)

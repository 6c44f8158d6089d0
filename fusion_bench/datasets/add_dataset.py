"""A published collection, wherever it is → a dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fusion_bench.datasets.add_collection import read_collection
from fusion_bench.datasets.write_collection import AddedDataset, check_free, write_collection


def add_dataset(
    collection: str,
    folder: Path,
    *,
    splits: Sequence[str] = (),
    name: str | None = None,
    any_counts: bool = False,
    download: bool = False,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> AddedDataset:
    """Make a dataset of a published test collection: queries, judgments and documents.

    Args:
        collection: ``ir_datasets:ID``, ``beir:FOLDER`` or ``mteb:FOLDER``.
        folder: Where to; created if missing.
        splits: The splits to read; empty = all.
        name: The dataset's name; by default the collection's.
        any_counts: Accept counts that differ from the stated ones.
        download: Whether ir_datasets may download what its cache lacks.
        progress: Called as the work goes on.

    Raises:
        ConfigError: The place has another form, or the folder holds a dataset already.
        FusionBenchError: The collection is not there, or breaks a rule.
    """
    check_free(folder)
    progress("reading the queries and judgments", 0, 1)
    read = read_collection(_expand_home(collection), splits, download=download)
    return write_collection(read, folder, name=name, any_counts=any_counts, progress=progress)


def _expand_home(place: str) -> str:
    """``~`` after the colon, which a shell leaves as it is."""
    kind, colon, rest = place.partition(":")
    return f"{kind}{colon}{Path(rest).expanduser()}" if rest.startswith("~") else place

"""Where a published collection is: ``ir_datasets:ID``, ``beir:FOLDER`` or ``mteb:FOLDER``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fusion_bench.datasets.beir_folder import read_beir_folder
from fusion_bench.datasets.collection import Collection
from fusion_bench.datasets.ir_datasets import read_ir_dataset
from fusion_bench.datasets.mteb_folder import read_mteb_folder
from fusion_bench.errors import ConfigError

FOLDER_READERS: Final = {"beir": read_beir_folder, "mteb": read_mteb_folder}
LIBRARY: Final = "ir_datasets"
KINDS: Final = (f"{LIBRARY}:ID", *(f"{kind}:FOLDER" for kind in FOLDER_READERS))


def read_collection(
    place: str, splits: Sequence[str] = (), *, download: bool = False
) -> Collection:
    """Read the queries and judgments of a collection.

    Args:
        place: ``ir_datasets:ID``, ``beir:FOLDER`` or ``mteb:FOLDER``.
        splits: The splits to read; empty = all.
        download: Whether ir_datasets may download what its cache lacks.

    Raises:
        ConfigError: The place has another form, or its folder is none.
        MissingExtraError: ir_datasets is not installed.
        FusionBenchError: The collection is not there, or breaks a rule.
    """
    kind, _, rest = place.partition(":")
    if kind not in (LIBRARY, *FOLDER_READERS) or not rest:
        raise ConfigError(f"{place!r} names no collection: write {', '.join(KINDS)}")
    if kind == LIBRARY:
        return read_ir_dataset(rest, splits, download=download)
    folder = Path(rest)
    if not folder.is_dir():
        raise ConfigError(f"{place}: no such folder: name one that holds the collection")
    return FOLDER_READERS[kind](folder, splits)

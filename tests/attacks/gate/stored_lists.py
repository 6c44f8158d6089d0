"""A cache in which the better list is stored under the key of the worse file."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fusion_bench.io.dataset_cache import FOLDER, StoredArrays, open_arrays, write_arrays
from tests.attacks.project import GATE, RUN
from tests.attacks.runner import run_here

CACHE: Final = f"datasets/mine/{FOLDER}"
#: The cache that the gate uses; with it, small datasets have one, too.
ENVIRONMENT: Final[Mapping[str, str]] = {"FUSION_BENCH_CACHE": CACHE}


def forge_cache(root: Path, worse: bytes, place: Path | None = None) -> None:
    """Put the worse list in the place of the good one, and a cache that says otherwise beside it.

    Stamps of files are left out, as a checkout has other ones.

    Args:
        root: A repository with the project, in which git does not know the cache.
        worse: The bytes of the worse list, for the file of the good one.
        place: The folder of the cache; beside the dataset by default.
    """
    good_entries = _fill_cache(root)
    (root / RUN).write_bytes(worse)
    worse_entries = _fill_cache(root)
    place = place or root / CACHE
    place.mkdir(parents=True, exist_ok=True)
    for key, entry in worse_entries.items():
        same = [
            each
            for name, each in good_entries.items()
            if each.arrays.keys() == entry.arrays.keys() and name not in worse_entries
        ]
        if key not in good_entries:
            [entry] = same
        write_arrays(place / key, key, entry.facts, entry.arrays)


def _fill_cache(root: Path) -> dict[str, StoredArrays]:
    """Run the gate on an empty cache; its entries, which no longer stand on the disk."""
    folder = root / CACHE
    assert run_here(GATE, root, ENVIRONMENT).code in {0, 1, 3}
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    entries = {}
    for name in names:
        stored = open_arrays(folder / name, name)
        arrays = {key: array.copy() for key, array in stored.arrays.items()}
        entries[name] = StoredArrays(dict(stored.facts), arrays)
    assert entries
    shutil.rmtree(folder)
    return entries

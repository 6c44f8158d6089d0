"""A retrieval dataset of MTEB in the folder to which it was downloaded.

Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark", arXiv:2210.07316. The parts
``corpus``, ``queries`` and ``qrels`` (or ``default``) are Parquet files ``PART/SPLIT-….parquet``,
or JSON Lines as in BEIR. The folder may be the one in the cache of Hugging Face's hub, with the
files in ``snapshots/REVISION``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from fusion_bench.datasets.beir_folder import read_beir_folder, read_judgments
from fusion_bench.datasets.collection import (
    Collection,
    CollectionDocument,
    choose_splits,
    join_splits,
)
from fusion_bench.datasets.dataset_card import read_card
from fusion_bench.datasets.json_lines import collect_texts, parse_document
from fusion_bench.errors import DataError
from fusion_bench.util.files.real_paths import resolve_path

#: Folders of the judgments, the first that is there counts.
QRELS_FOLDERS: Final = ("qrels", "default", "data")
#: ``test-00000-of-00001.parquet`` is of the split ``test``.
SPLIT: Final = re.compile(r"(?P<split>.+?)(-\d{5}-of-\d{5})?\.parquet")
#: How the hub's cache names the folder of a dataset: ``datasets--mteb--nfcorpus``.
HUB_FOLDER: Final = re.compile(r"datasets--(?P<owner>.+?)--(?P<name>.+)")


def read_mteb_folder(folder: Path, splits: Sequence[str] = ()) -> Collection:
    """Read the queries and judgments of a folder.

    Args:
        folder: With the parts, or of the hub's cache.
        splits: The splits to read; empty = all.

    Raises:
        DataError: A part is missing, or a file breaks a rule.
    """
    root = find_snapshot(folder)
    if not (root / "corpus").is_dir():
        return read_beir_folder(root, splits)
    corpus, queries = _list_parquet(root / "corpus"), _list_parquet(root / "queries")
    files = _find_qrels(root)
    chosen = choose_splits(str(root), list(files), splits)
    texts = collect_texts(_iterate_rows(queries))
    judgments = {
        name: [row for file in files[name] for row in read_judgments(file)] for name in chosen
    }
    judged, all_judgments = join_splits(str(root), texts, judgments)
    card = read_card(root)
    return Collection(
        name=_name_dataset(folder),
        origin=str(folder),
        queries=judged,
        judgments=all_judgments,
        read_documents=lambda: _read_documents(corpus),
        license=card.license,
        counts={"queries": len(texts), "judgments": len(all_judgments)},
        stated=card.state_counts(chosen),
    )


def find_snapshot(folder: Path) -> Path:
    """The folder with the files: of the hub's cache, the revision that ``refs/main`` names.

    Raises:
        DataError: The cache holds no revision, or several and none is named.
    """
    snapshots = folder / "snapshots"
    if not snapshots.is_dir():
        return folder
    revisions = sorted(path.name for path in snapshots.iterdir() if path.is_dir())
    main = folder / "refs" / "main"
    named = main.read_text(encoding="utf-8").strip() if main.is_file() else ""
    if named in revisions:
        return snapshots / named
    if len(revisions) == 1:
        return snapshots / revisions[0]
    raise DataError(
        f"{snapshots}: {len(revisions)} revisions, and refs/main names none of them: name the "
        "folder of one"
    )


def _name_dataset(folder: Path) -> str:
    name = resolve_path(folder).name
    match = HUB_FOLDER.fullmatch(name)
    return name if match is None else match["name"]


def _list_parquet(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
    if not files:
        raise DataError(
            f"{folder}: no .parquet file: a dataset of MTEB has the folders corpus, queries and "
            f"one of {', '.join(QRELS_FOLDERS)}"
        )
    return files


def _find_qrels(root: Path) -> dict[str, list[Path]]:
    """Name of each split → the files of its judgments."""
    folder = next((root / name for name in QRELS_FOLDERS if (root / name).is_dir()), root / "qrels")
    files: dict[str, list[Path]] = {}
    for path in _list_parquet(folder):
        match = SPLIT.fullmatch(path.name)
        files.setdefault(match["split"] if match else path.stem, []).append(path)
    return files


def _read_documents(files: Sequence[Path]) -> Iterator[CollectionDocument]:
    for where, row in _iterate_rows(files):
        yield parse_document(row, where)


def _iterate_rows(files: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with its place; a value that is missing is None."""
    for path in files:
        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
            raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
        kept = frame[[name for name in ("_id", "id", "text", "title") if name in frame.columns]]
        plain = kept.astype(object).where(kept.notna(), None)
        for number, row in enumerate(plain.to_dict(orient="records"), start=1):
            yield f"{path}: row {number}", {str(name): value for name, value in row.items()}

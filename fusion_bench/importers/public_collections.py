"""A published collection by its name, from ir_datasets or a folder, as a dataset.

MacAvaney et al. 2021, "Simplified Data Wrangling with ir_datasets", arXiv:2103.02280. The library
downloads what its cache lacks. Here it may not, unless it is asked to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest.mock import patch

from fusion_bench.errors import ConfigError, DataError, FusionBenchError, UnknownNameError
from fusion_bench.importers.collection import (
    FILES,
    AddedDataset,
    CollectionDocument,
    CollectionJudgment,
    ImportedCollection,
    join_splits,
    write_collection,
)
from fusion_bench.importers.collection_folders import read_beir_folder, read_mteb_folder
from fusion_bench.util.files import require_free
from fusion_bench.util.optional_imports import import_optional

#: What the library calls the counts of its parts.
PARTS: Final = {"queries": "queries", "judgments": "qrels", "documents": "docs"}


class NotCachedError(Exception):
    """The library wanted to download something."""


def read_ir_dataset(
    name: str, splits: Sequence[str] = (), *, download: bool = False
) -> ImportedCollection:
    """Read the queries and judgments of a dataset.

    Args:
        name: Its id, such as ``beir/nfcorpus/test``; or one without judgments, whose parts such as
            ``beir/nfcorpus/dev`` are then its splits.
        splits: The parts to read; empty = all.
        download: Whether the library may download what its cache lacks.

    Raises:
        MissingExtraError: ir_datasets is not installed.
        UnknownNameError: It has no such dataset.
        DataError: Its cache lacks a part, or a part breaks a rule.
    """
    library = import_optional("ir_datasets", extra="ir-datasets", purpose="reading its datasets")
    with _read_cache_only(library, name, download=download):
        parts = _find_parts(library, name, splits)
        texts: dict[str, str] = {}
        judgments: dict[str, list[CollectionJudgment]] = {}
        stated = dict.fromkeys(PARTS, 0)
        for split, dataset in parts.items():
            rows = ((str(query.query_id), query.default_text()) for query in dataset.queries_iter())
            texts |= rows
            judgments[split] = [
                (row.query_id, row.doc_id, row.relevance) for row in dataset.qrels_iter()
            ]
            for what, part in PARTS.items():
                stated[what] += (dataset.metadata().get(part) or {}).get("count") or 0
        queries, all_judgments = join_splits(name, texts, judgments)
    first = next(iter(parts.values()))
    stated["documents"] = (first.metadata().get("docs") or {}).get("count") or 0
    return ImportedCollection(
        name=name.replace("/", "-"),
        origin=f"ir_datasets:{name}",
        queries=queries,
        judgments=all_judgments,
        read_documents=partial(_read_documents, library, name, first, download=download),
        counts={"queries": len(texts), "judgments": len(all_judgments)},
        stated={what: count for what, count in stated.items() if count},
        notes=(
            "ir_datasets states no license: read that of the collection's makers, "
            f"https://ir-datasets.com/{name.partition('/')[0]}.html",
        ),
    )


def _find_parts(library: Any, name: str, splits: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401
    """The dataset itself, or the parts of one without judgments that have some."""
    known = [each for each in library.registry if each == name or each.startswith(f"{name}/")]
    if not known:
        collection = name.partition("/")[0]
        alike = [each for each in library.registry if each.partition("/")[0] == collection]
        alike = alike or [each for each in library.registry if "/" not in each]
        raise UnknownNameError("dataset of ir_datasets", name, alike)
    whole = library.load(name)
    if whole.has_qrels() and not splits:
        return {"": whole}
    parts = {
        each.removeprefix(f"{name}/"): library.load(each)
        for each in known
        if each.count("/") == name.count("/") + 1
    }
    judged = {
        split: dataset
        for split, dataset in parts.items()
        if dataset.has_qrels() and dataset.has_queries()
    }
    unknown = [split for split in splits if split not in judged]
    if unknown or not judged:
        listed = ", ".join(judged) or "none"
        raise DataError(
            f"ir_datasets:{name}: {f'no split {unknown[0]!r}' if unknown else 'no judgments'} "
            f"(parts with judgments: {listed})"
        )
    return {split: judged[split] for split in judged if not splits or split in splits}


def _read_documents(
    library: Any,  # noqa: ANN401
    name: str,
    dataset: Any,  # noqa: ANN401
    *,
    download: bool,
) -> Iterator[CollectionDocument]:
    with _read_cache_only(library, name, download=download):
        for document in dataset.docs_iter():
            title = getattr(document, "title", "") or ""
            text = document.text if hasattr(document, "text") else document.default_text()
            yield str(document.doc_id), title, text or ""


@contextmanager
def _read_cache_only(library: Any, name: str, *, download: bool) -> Iterator[None]:  # noqa: ANN401
    """Let the library read its cache, and refuse its downloads unless they are wanted.

    It has no setting for this, so its class that opens a URL is replaced meanwhile.
    """

    def refuse(self: object) -> NoReturn:
        raise NotCachedError(getattr(self, "url", "a file"))

    module = library.util.download
    try:
        if download:
            yield
        else:
            with patch.object(module.RequestsDownload, "__iter__", refuse):
                yield
    except NotCachedError as error:
        raise DataError(
            f"ir_datasets:{name}: the library would download {error}, which its cache "
            f"({library.util.home_path()}) lacks. Pass --download to allow that"
        ) from None
    except FusionBenchError:
        raise
    except Exception as error:  # its readers of some hundred formats raise what they like
        raise DataError(
            f"ir_datasets:{name}: the library cannot read it: {type(error).__name__}: {error}. Is "
            f"a file in its cache ({library.util.home_path()}) damaged or unfinished? Delete the "
            "collection's folder there, and get it again"
        ) from error


FOLDER_READERS: Final = {"beir": read_beir_folder, "mteb": read_mteb_folder}
LIBRARY: Final = "ir_datasets"
KINDS: Final = (f"{LIBRARY}:ID", *(f"{kind}:FOLDER" for kind in FOLDER_READERS))


def read_collection(
    place: str, splits: Sequence[str] = (), *, download: bool = False
) -> ImportedCollection:
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


def add_dataset(
    collection: str,
    out: str | os.PathLike[str],
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
        out: The folder to write.
        splits: The splits to read; empty = all.
        name: The dataset's name; by default the collection's.
        any_counts: Accept counts that differ from those that the collection's makers state.
        download: Whether ir_datasets may download what its cache lacks.
        progress: Called as the work goes on.

    Raises:
        FusionBenchError: The collection is not there or breaks a rule, a count differs, or the
            folder holds a dataset already.
    """
    folder = Path(out)
    require_free(folder, FILES)
    progress("reading the queries and judgments", 0, 1)
    kind, colon, rest = collection.partition(":")
    place = f"{kind}{colon}{Path(rest).expanduser()}" if rest.startswith("~") else collection
    read = read_collection(place, splits, download=download)
    return write_collection(read, folder, name=name, any_counts=any_counts, progress=progress)

"""A published collection by its name, from ir_datasets or a folder, as a dataset.

MacAvaney et al. 2021, "Simplified Data Wrangling with ir_datasets", arXiv:2103.02280. The library
downloads what its cache lacks. Here it may not, unless it is asked to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn
from unittest.mock import patch

from fusion_bench.config.yaml_files import format_yaml
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, UnknownNameError
from fusion_bench.importers.collection_folders import (
    FOLDER_READERS,
    CollectionDocument,
    CollectionJudgment,
    ImportedCollection,
    join_splits,
)
from fusion_bench.io.dataset_config import make_dataset_name
from fusion_bench.util.files import (
    make_write_error,
    open_atomic,
    remove_on_failure,
    require_free,
    write_atomic,
)
from fusion_bench.util.formatting import Columns, TableView, pluralize
from fusion_bench.util.json_text import encode_json_lines
from fusion_bench.util.optional_imports import import_optional

#: What the library calls the counts of its parts.
PARTS: Final = {"queries": "queries", "judgments": "qrels", "documents": "docs"}


class NotCachedError(Exception):
    """The library wanted to download something."""


def _read_ir_dataset(
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
        return _read_ir_dataset(rest, splits, download=download)
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
    require_free(folder, FILES)
    if not any_counts:
        _check_counts(read, read.counts)
    title = make_dataset_name(name or read.name, "added")
    paths = [folder / each for each in FILES]
    with remove_on_failure() as new:
        new += [folder] if not folder.exists() else [path for path in paths if not path.exists()]
        ids = _write_documents(folder / DOCUMENTS_FILE, read, progress)
        counts = {**read.counts, "documents": len(ids)}
        if not any_counts:
            _check_counts(read, counts)
        notes = (*read.notes, *_list_notes(read, counts, ids))
        write_atomic(folder / QRELS_FILE, _qrels_text(read).encode())
        write_atomic(
            folder / QUERIES_FILE,
            encode_json_lines(
                {
                    "id": query,
                    **({"text": text} if text else {}),
                    **({"split": split} if split else {}),
                }
                for query, text, split in read.queries
            ),
        )
        write_atomic(folder / DATASET_FILE, _dataset_text(read, title).encode())
    return AddedDataset(
        name=title,
        license=read.license,
        counts={
            "queries": len(read.queries),
            "unjudged_queries": counts["queries"] - sum(text != "" for _, text, _ in read.queries),
            "judgments": counts["judgments"],
            "documents": counts["documents"],
        },
        compared=tuple(read.stated),
        differing=tuple(_list_differing(read, counts)),
        notes=notes,
        files=tuple(paths),
    )


#: What is counted, in the order in which it is shown.
COUNTED = ("queries", "judgments", "documents")


def _list_differing(
    collection: ImportedCollection, counts: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Map each count that differs from the stated one to both numbers.

    Args:
        collection: With the stated counts.
        counts: What was read; what is not among them is not compared.
    """
    pairs = {
        what: (counts[what], collection.stated.get(what)) for what in COUNTED if what in counts
    }
    return {
        what: (count, stated)
        for what, (count, stated) in pairs.items()
        if stated is not None and stated != count
    }


def _check_counts(collection: ImportedCollection, counts: Mapping[str, int]) -> None:
    """Compare what was read with what the collection's makers state.

    Args:
        collection: With the stated counts.
        counts: What was read; what is not among them is not compared.

    Raises:
        DataError: A count differs.
    """
    for what, (count, stated) in _list_differing(collection, counts).items():
        raise DataError(
            f"{collection.origin}: {count:,} {what} were read, and {stated:,} are stated: the "
            "copy is incomplete or another version. Copy it again, or pass --any-counts"
        )


#: How often the progress of the documents is told.
DOCUMENTS_A_STEP = 5_000


DATASET_FILE, QRELS_FILE = "dataset.yaml", "qrels.txt"
QUERIES_FILE, DOCUMENTS_FILE = "queries.jsonl", "documents.jsonl"
FILES = (DATASET_FILE, QRELS_FILE, QUERIES_FILE, DOCUMENTS_FILE)


@dataclass(frozen=True, repr=False)
class AddedDataset(TableView):
    """A collection that was added as a dataset.

    Attributes:
        name: The dataset's name.
        license: Its terms; empty where nothing states them.
        counts: ``queries`` (judged), ``judgments``, ``documents``, and ``unjudged_queries``.
        compared: What was compared with the count that the collection's makers state.
        differing: What of these differs.
        notes: What a user should know.
        files: What was written, the ``dataset.yaml`` first.
    """

    name: str
    license: str
    counts: Mapping[str, int]
    compared: tuple[str, ...]
    differing: tuple[str, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]

    def _summary(self) -> str:
        return (
            f"AddedDataset({self.name!r}, license {self.license or 'not stated'}: {self.files[0]})"
        )

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a kind of record."""
        rows = [*self.counts.items()][:limit]
        return {"records": [name for name, _ in rows], "count": [count for _, count in rows]}


def _write_documents(
    path: Path, collection: ImportedCollection, progress: Callable[[str, int, int], None]
) -> set[str]:
    """Write the documents as they are read; returns their ids."""
    ids: set[str] = set()
    expected = collection.stated.get("documents", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            for name, title, text in collection.read_documents():
                if name in ids:
                    raise DataError(
                        f"{collection.origin}: document {name!r} appears twice: keep one"
                    )
                ids.add(name)
                titled = {"title": title} if title else {}
                file.write(encode_json_lines([{"id": name, **titled, "text": text}]))
                if len(ids) % DOCUMENTS_A_STEP == 0:
                    progress("writing the documents", len(ids), max(expected, len(ids)))
    except OSError as error:
        raise make_write_error(path, error) from error
    if not ids:
        raise DataError(f"{collection.origin}: no documents: at least one is needed")
    return ids


def _list_notes(
    collection: ImportedCollection, counts: Mapping[str, int], ids: set[str]
) -> Iterator[str]:
    if not collection.license and not collection.notes:
        yield "no license is stated: find the collection's terms before you share anything of it"
    absent = {document for _, document, _ in collection.judgments} - ids
    if absent:
        yield (
            f"{pluralize(len(absent), 'judged document')} not in the collection (for example "
            f"{min(absent)!r}): no system can return them"
        )
    for what, (count, stated) in _list_differing(collection, counts).items():
        yield f"{count:,} {what} were read, and {stated:,} are stated"


def _qrels_text(collection: ImportedCollection) -> str:
    for query, document, _ in collection.judgments:
        for each in (query, document):
            if each != "".join(each.split()):
                raise DataError(
                    f"{collection.origin}: the id {each!r} has a blank in it, which parts the "
                    "columns of judgments: rename it"
                )
    rows = collection.judgments
    return "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows)


def _dataset_text(collection: ImportedCollection, name: str) -> str:
    data: dict[str, Any] = {
        "name": name,
        "description": f"Added from {collection.origin}.",
        "license": collection.license,
        "qrels": QRELS_FILE,
        "queries": QUERIES_FILE,
        "documents": DOCUMENTS_FILE,
    }
    return f"# Written by: fusion-bench dataset add\n{format_yaml(data)}"

"""Collections in folders, as BEIR or MTEB publishes them, with what their cards state.

Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
Retrieval Models", arXiv:2104.08663. MTEB's older datasets have the same files, with ``.jsonl``
judgments.

Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark", arXiv:2210.07316. The parts
``corpus``, ``queries`` and ``qrels`` (or ``default``) are Parquet files ``PART/SPLIT-….parquet``,
or JSON Lines as in BEIR. The folder may be the one in the cache of Hugging Face's hub, with the
files in ``snapshots/REVISION``.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import pandas as pd
import yaml

from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import DataError
from fusion_bench.io import raw_files
from fusion_bench.io.json_objects import parse_object, refuse_repeated, require_text
from fusion_bench.io.load_records import load_qrels
from fusion_bench.util.files import open_regular, read_regular_text, resolve_path
from fusion_bench.util.formatting import pluralize

#: Query, document, grade.
CollectionJudgment: TypeAlias = tuple[str, str, int]
#: Id, title (empty where it has none) and text of a document.
CollectionDocument: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class ImportedCollection:
    """A test collection, read as far as its queries and judgments.

    Attributes:
        name: A name for the dataset.
        origin: Where it comes from, for the description.
        queries: The judged queries: id, text, split (empty where there is one part only).
        judgments: Their judgments.
        read_documents: Reads the documents, one after the other.
        license: Its terms; empty where nothing states them.
        counts: What was read: ``queries`` (judged or not) and ``judgments``.
        stated: What its makers say of these and of ``documents``.
        notes: What a user should know.
    """

    name: str
    origin: str
    queries: Sequence[tuple[str, str, str]]
    judgments: Sequence[CollectionJudgment]
    read_documents: Callable[[], Iterator[CollectionDocument]]
    license: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def join_splits(
    where: str, texts: Mapping[str, str], splits: Mapping[str, Sequence[CollectionJudgment]]
) -> tuple[list[tuple[str, str, str]], list[CollectionJudgment]]:
    """The judged queries and the judgments of a collection's splits; a few may have no text.

    Args:
        where: Prefix of a message.
        texts: Query id → text.
        splits: Name of a split → its judgments.

    Raises:
        DataError: Half of the judged queries have no text, or two splits judge one query.
    """
    split_of: dict[str, str] = {}
    for split, judgments in splits.items():
        for query in dict.fromkeys(query for query, _, _ in judgments):
            if query in split_of:
                raise DataError(
                    f"{where}: query {query!r} is judged in the splits {split_of[query]!r} and "
                    f"{split!r}: name the splits to add with --split"
                )
            split_of[query] = split
    missing = [query for query in split_of if query not in texts]
    if missing and 2 * len(missing) >= len(split_of):
        raise DataError(
            f"{where}: {pluralize(len(missing), 'judged query')} without a text (for example "
            f"{missing[0]!r}): the queries and the judgments have to belong together"
        )
    is_whole = len(splits) == 1
    queries = [
        (query, texts.get(query, ""), "" if is_whole else split)
        for query, split in split_of.items()
    ]
    return queries, [judgment for each in splits.values() for judgment in each]


#: Most characters of a line; the longest document of BEIR has some 2 million.
MOST_LINE_CHARACTERS = 64_000_000


def _iterate_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a JSON Lines file with its place; skip blank lines.

    Unlike :func:`~fusion_bench.io.json_objects.read_objects` it holds one line at a time.

    Raises:
        DataError: The file cannot be read, or a line is not a JSON object.
    """
    with raw_files.name_read_errors(path), open_regular(path) as file:
        is_packed = file.peek(len(raw_files.GZIP))[: len(raw_files.GZIP)] == raw_files.GZIP
        lines: IO[bytes] = gzip.GzipFile(fileobj=file) if is_packed else file  # type: ignore[assignment]
        number = 0
        while line := lines.readline(MOST_LINE_CHARACTERS):
            number += 1
            where = f"{path}:{number}"
            if len(line) == MOST_LINE_CHARACTERS:
                raise DataError(
                    f"{where}: a line of over {MOST_LINE_CHARACTERS:,} bytes: not JSON Lines"
                )
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{where}: not UTF-8 text") from None
            if text.strip():
                yield where, parse_object(text, where)


def _read_documents(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[CollectionDocument]:
    """The documents of BEIR or MTEB: ``_id`` or ``id``, ``text``, and perhaps ``title``.

    Raises:
        DataError: One has no id or text, or one that is no text.
    """
    for where, item in rows:
        name, text = _parse_text(item, "document", where)
        title = item.get("title")
        title = "" if title is None else require_text(title, "title", where)
        yield name, title, text


def _parse_text(item: Mapping[str, Any], what: str, where: str) -> tuple[str, str]:
    """Id and text of a document or a query of BEIR or MTEB.

    Raises:
        DataError: It has no id or text, or one that is no text.
    """
    given, text = item.get("_id", item.get("id")), item.get("text")
    if given in (None, "") or text is None:
        raise DataError(
            f"{where}: a {what} needs an '_id' and a 'text' (found: {', '.join(item) or 'none'})"
        )
    return require_text(given, "_id", where), require_text(text, "text", where)


def _collect_texts(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Id → text of the queries of BEIR or MTEB.

    Args:
        rows: Place and content of each.

    Raises:
        DataError: A query has no id or text, or one that is no text, or an id appears twice.
    """
    texts: dict[str, str] = {}
    for where, item in rows:
        query, text = _parse_text(item, "query", where)
        refuse_repeated(query, texts, "query", where)
        texts[query] = text
    return texts


FILE = "README.md"
#: The line before and after the YAML at the top of the file.
FENCE = "---"
#: Greatest part of the file that is read as YAML, in characters.
MOST_CARD_CHARACTERS = 500_000
#: Names of the parts of a collection in ``dataset_info``, as MTEB's datasets have them.
CORPUS, QUERIES, QRELS = ("corpus",), ("queries", "query"), ("default", "qrels")


#: The parts of a collection, as the card calls them.
Rows: TypeAlias = Mapping[tuple[str, str], int]


def _count_rows(
    rows: Rows, parts: Sequence[str], splits: Sequence[str] | None = None
) -> int | None:
    counts = [
        count
        for (part, split), count in rows.items()
        if part in parts and (splits is None or split in splits)
    ]
    is_known = len(counts) == len(splits) if splits is not None else bool(counts)
    return sum(counts) if is_known else None


def read_card(folder: Path) -> tuple[str, Rows]:
    """The license and the counts of rows that a folder's card states; empty if it has none."""
    try:
        text = raw_files.read_text(folder / FILE)[:MOST_CARD_CHARACTERS]
    except DataError:
        return "", {}
    before, first_fence, rest = text.partition(f"{FENCE}\n")
    top, last_fence, _ = rest.partition(f"\n{FENCE}")
    if before.strip() or not first_fence or not last_fence:
        return "", {}
    try:
        data = yaml.safe_load(top)
    except (yaml.YAMLError, RecursionError, ValueError):
        return "", {}
    if not isinstance(data, dict):
        return "", {}
    given = data.get("license")
    names = given if isinstance(given, list) else [given]
    license_name = ", ".join(name for name in names if isinstance(name, str))
    rows: dict[tuple[str, str], int] = {}
    info = data.get("dataset_info")
    for part in info if isinstance(info, list) else [info]:
        splits = part.get("splits") if isinstance(part, dict) else None
        for split in splits if isinstance(splits, list) else []:
            name = split.get("name") if isinstance(split, dict) else None
            count = split.get("num_examples") if isinstance(split, dict) else None
            if isinstance(name, str) and type(count) is int:
                rows[str(part.get("config_name", "default")), name] = count
    return license_name, rows


#: Formats of judgments, the preferred one first.
QRELS_SUFFIXES = (".tsv", ".jsonl", ".trec", ".txt")


def _read_beir_folder(folder: Path, splits: Sequence[str] = ()) -> ImportedCollection:
    """Read the queries and judgments of a folder.

    Args:
        folder: With the three parts; each file may be packed as ``.gz``.
        splits: The splits to read; empty = all.

    Raises:
        DataError: A part is missing, or a file breaks a rule.
    """
    corpus, queries = _find_json_lines(folder, "corpus"), _find_json_lines(folder, "queries")
    place = folder / "qrels"
    if not place.is_dir():
        raise DataError(f"{place}: no such folder: the judgments belong in qrels/SPLIT.tsv")
    files: dict[str, Path] = {}
    for suffix in QRELS_SUFFIXES:
        for path in sorted(place.iterdir()):
            if raw_files.format_suffix(path) == suffix and path.is_file():
                files.setdefault(raw_files.strip_suffixes(path), path)
    chosen = _choose_splits(str(place), sorted(files), splits)
    texts = _collect_texts(_iterate_objects(queries))
    qrels = {name: [files[name]] for name in chosen}
    return _import_parts(folder, qrels, texts, lambda: _read_documents(_iterate_objects(corpus)))


def _choose_splits(where: str, known: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The splits that are added: the wanted ones, or all.

    Raises:
        DataError: There is none, or a wanted one is not known.
    """
    if not known:
        raise DataError(f"{where}: no judgments: a collection has at least one split with some")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise DataError(f"{where}: no split {unknown[0]!r} (known: {', '.join(known)})")
    return [name for name in known if not wanted or name in wanted]


def _import_parts(
    folder: Path,
    qrels: Mapping[str, Sequence[Path]],
    texts: Mapping[str, str],
    read_documents: Callable[[], Iterator[CollectionDocument]],
) -> ImportedCollection:
    """The collection of a folder's parts.

    Args:
        folder: With a card or none; the collection has its name.
        qrels: Split → the files of its judgments.
        texts: Query id → text.
        read_documents: Reads the documents.
    """
    tables = {split: [*map(load_qrels, files)] for split, files in qrels.items()}
    judgments = {
        split: [row for table in each for row in list_judgments(table)]
        for split, each in tables.items()
    }
    judged, all_judgments = join_splits(str(folder), texts, judgments)
    notes = [
        f"{split}: {n}" for split, each in tables.items() for table in each for n in table.notes
    ]
    if missing := [query for query, _, _ in judged if query not in texts]:
        count = pluralize(len(missing), "judged query")
        notes.append(f"{count} without a text (for example {missing[0]!r})")
    license_name, rows = read_card(folder)
    stated = {
        "queries": _count_rows(rows, QUERIES),
        "judgments": _count_rows(rows, QRELS, [*qrels]),
        "documents": _count_rows(rows, CORPUS),
    }
    return ImportedCollection(
        name=resolve_path(folder).name,
        origin=str(folder),
        queries=judged,
        judgments=all_judgments,
        read_documents=read_documents,
        license=license_name,
        counts={"queries": len(texts), "judgments": len(all_judgments)},
        stated={what: count for what, count in stated.items() if count is not None},
        notes=tuple(notes),
    )


def _find_json_lines(folder: Path, name: str) -> Path:
    """``NAME.jsonl`` of a folder, packed or not.

    Raises:
        DataError: There is none.
    """
    for path in (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"):
        if path.exists():
            return path
    raise DataError(
        f"{folder}: no {name}.jsonl: a folder of BEIR has corpus.jsonl, queries.jsonl and "
        "qrels/SPLIT.tsv"
    )


def list_judgments(qrels: Qrels) -> list[CollectionJudgment]:
    """One row a judgment."""
    nested = qrels.to_dict()
    return [(query, name, grade) for query, row in nested.items() for name, grade in row.items()]


#: Folders of the judgments, the first that is there counts.
QRELS_FOLDERS: Final = ("qrels", "default", "data")
#: ``test-00000-of-00001.parquet`` is of the split ``test``.
SPLIT: Final = re.compile(r"(?P<split>.+?)(-\d{5}-of-\d{5})?\.parquet")
#: How the hub's cache names the folder of a dataset: ``datasets--mteb--nfcorpus``.
HUB_FOLDER: Final = re.compile(r"datasets--(?P<owner>.+?)--(?P<name>.+)")


def _read_mteb_folder(folder: Path, splits: Sequence[str] = ()) -> ImportedCollection:
    """Read the queries and judgments of a folder.

    Args:
        folder: With the parts, or of the hub's cache.
        splits: The splits to read; empty = all.

    Raises:
        DataError: A part is missing, or a file breaks a rule.
    """
    root, snapshots = folder, folder / "snapshots"
    if snapshots.is_dir():  # of the hub's cache: the revision that ``refs/main`` names
        revisions = sorted(path.name for path in snapshots.iterdir() if path.is_dir())
        main = folder / "refs" / "main"
        named = read_regular_text(main).strip() if main.is_file() else ""
        if named not in revisions and len(revisions) != 1:
            raise DataError(
                f"{snapshots}: {len(revisions)} revisions, and refs/main names none of them: name "
                "the folder of one"
            )
        root = snapshots / (named if named in revisions else revisions[0])
    if not (root / "corpus").is_dir():
        return _read_beir_folder(root, splits)
    corpus, queries = _list_parquet(root / "corpus"), _list_parquet(root / "queries")
    place = next((root / name for name in QRELS_FOLDERS if (root / name).is_dir()), root / "qrels")
    files: dict[str, list[Path]] = {}
    for path in _list_parquet(place):
        split = SPLIT.fullmatch(path.name)
        files.setdefault(split["split"] if split else path.stem, []).append(path)
    chosen = _choose_splits(str(root), list(files), splits)
    texts = _collect_texts(_iterate_rows(queries))
    qrels = {name: files[name] for name in chosen}
    read = _import_parts(root, qrels, texts, lambda: _read_documents(_iterate_rows(corpus)))
    name = resolve_path(folder).name
    match = HUB_FOLDER.fullmatch(name)
    return replace(read, name=name if match is None else match["name"], origin=str(folder))


def _list_parquet(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
    if not files:
        raise DataError(
            f"{folder}: no .parquet file: a dataset of MTEB has the folders corpus, queries and "
            f"one of {', '.join(QRELS_FOLDERS)}"
        )
    return files


def _iterate_rows(files: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row of Parquet files with its place; a missing value is None."""
    for path in files:
        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
            raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
        kept = frame[[name for name in ("_id", "id", "text", "title") if name in frame.columns]]
        plain = kept.astype(object).where(kept.notna(), None)
        for number, row in enumerate(plain.to_dict(orient="records"), start=1):
            yield f"{path}: row {number}", {str(name): value for name, value in row.items()}


#: Kind of a folder → what reads it.
FOLDER_READERS: Final = {"beir": _read_beir_folder, "mteb": _read_mteb_folder}

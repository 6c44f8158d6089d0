"""Rows of documents by query, made from files, dictionaries, data frames or named tuples.

Objects of other packages are recognized by what they offer, so that none has to be imported:

- ``{query: {document: value}}``, ``{query: [(document, value), …]}``, ``{query: [document, …]}``;
- data frames of pandas and polars, tables of pyarrow: by the names of their columns;
- ``Qrels`` and ``Run`` of ranx: by ``to_dict``;
- rows of ir_measures and ir_datasets, and other named tuples or mappings: by their field names;
- datasets of ir_datasets: by ``qrels_iter`` and ``scoreddocs_iter``.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import chain, compress, repeat
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.grouped_rows import IdVocabulary, query_of_rows, query_slices
from fusion_bench.data.ordering import IntArray
from fusion_bench.errors import DataError
from fusion_bench.util.files import write_atomic
from fusion_bench.util.formatting import TableView

#: What every row names.
ID_ROLES: Final = ("query", "document")
#: Kind of file → what a row says of its document.
VALUE_ROLES: Final[Mapping[str, str]] = {"run": "score", "qrels": "grade"}
#: What the columns of a file may hold.
QRELS_ROLES: Final = (*ID_ROLES, VALUE_ROLES["qrels"])
RUN_ROLES: Final = (*ID_ROLES, VALUE_ROLES["run"], "rank")

#: Role of a column → the names that are known for it, in lower case. The first of them that a
#: table has counts: an id goes before ``query`` and ``document``, which may be texts beside it.
COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query_id", "query-id", "queryid", "qid", "q_id", "topic_id", "query", "topic"),
    "document": (
        "document_id",
        "documentid",
        "doc_id",
        "doc-id",
        "docno",
        "docid",
        "corpus-id",
        "corpus_id",
        "document",
        "doc",
    ),
    "score": ("score", "value", "sim", "similarity", "relevance_score"),
    "grade": ("grade", "relevance", "rel", "score", "label", "rating", "judgment", "judgement"),
    "rank": ("rank",),
}
#: Names of columns that may be texts, where another one has the ids.
TEXT_NAMES: Final = frozenset({"query", "topic", "document", "doc"})
#: Names of columns of distances, of which a smaller one is better: ``l2.dist``, ``Distance (L2)``.
DISTANCE: Final = re.compile(r"(.*[\W_])?(distances?|dist)(\s*\(.*\))?")


def list_candidates(
    names: Iterable[Any], role: str, known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES
) -> list[Any]:
    """Return the columns that are known to hold a role, capitals or not, the one to take first.

    Args:
        names: All columns of a table.
        role: What the column holds.
        known_names: Role → its known names.
    """
    by_name: dict[str, list[Any]] = {}
    for name in names:
        by_name.setdefault(fold_name(name), []).append(name)
    known = [name for name in known_names[role] if fold_name(name) in by_name]
    ids = [name for name in known if name not in TEXT_NAMES] or known
    return [given for name in ids for given in by_name.pop(fold_name(name), ())]


def fold_name(name: object) -> str:
    """Return a column's name in small letters, with ``_`` for a blank, a point or a hyphen."""
    return re.sub(r"[\s.-]+", "_", str(name).strip().lower())


def is_distance(name: object) -> bool:
    """Return whether a column of this name has distances."""
    return DISTANCE.fullmatch(str(name).strip().lower()) is not None


def is_blank(value: object) -> bool:
    """Whether a cell holds nothing, as the grade of an unjudged document."""
    if isinstance(value, str):
        return not value.strip()
    is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return value is None or is_nan or type(value).__name__ == "NAType"  # of pandas


def check_rivals(
    role: str, candidates: Sequence[Any], read: Callable[[Any], Any], remedy: str
) -> tuple[str, ...]:
    """Compare the first of the columns that are known to hold a role with the others.

    Args:
        role: What they hold.
        candidates: Their names, as :func:`list_candidates` returns them.
        read: Returns the values of a column, a list.
        remedy: What to do about two columns that differ.

    Returns:
        Notes: PyTerrier's frames have Terrier's internal number (``docid``) beside ``docno``.

    Raises:
        DataError: The values of two columns differ, so that nobody can tell which one is meant.
    """
    taken, *others = candidates
    values = read(taken) if others else None
    notes = []
    for other in others:
        if values == read(other):
            continue
        if (str(taken).strip().lower(), str(other).strip().lower()) != ("docno", "docid"):
            raise DataError(
                f"two columns may hold the {role}, {taken!r} and {other!r}, and their values "
                f"differ: {remedy}"
            )
        notes.append(
            f"Column {taken!r} is read as the document id; {other!r} is Terrier's own number."
        )
    return tuple(notes)


#: What a row says of a document.
ValueRole: TypeAlias = Literal["score", "grade"]

#: What is read, in the words of a message.
KINDS: Final = {"score": "a run", "grade": "judgments"}
#: The method of a dataset of ir_datasets that yields its rows.
DATASET_METHODS: Final = {"score": "scoreddocs_iter", "grade": "qrels_iter"}


class GivenRows(NamedTuple):
    """Parallel columns, one document of one query a row.

    Attributes:
        queries: Query ids.
        documents: Document ids.
        values: Scores or grades.
        notes: How they were found.
        lower_is_better: The values are ranks or distances: the smallest stands first.
    """

    queries: Sequence[Any]
    documents: Sequence[Any]
    values: Sequence[Any] | NDArray[Any]
    notes: tuple[str, ...] = ()
    lower_is_better: bool = False


def read_rows(given: Any, role: ValueRole) -> GivenRows:  # noqa: ANN401 - that is its purpose
    """The rows of judgments or of a run; see this module for what is known.

    Args:
        given: What holds them.
        role: Whether the values are scores or grades.

    Raises:
        DataError: It is of no known kind, or lacks a column.
    """
    if isinstance(given, Mapping):
        return _read_nested(given, role)
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):
        raise DataError("a lazy frame has no rows yet: call its collect() first")
    if hasattr(given, "columns"):
        return _read_frame(given, role)
    if hasattr(given, "to_dict"):
        return _read_nested(given.to_dict(), role)
    if hasattr(given, DATASET_METHODS[role]):
        return _read_records(getattr(given, DATASET_METHODS[role])(), role)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return _read_records(given, role)
    raise DataError(_describe_unknown(given, role))


@contextmanager
def name_row(rows: GivenRows) -> Iterator[None]:
    """Add the query and the document of the offending row to an error."""
    try:
        yield
    except DataError as error:
        if error.row is None or "document " in str(error):
            raise
        query, document = rows.queries[error.row], rows.documents[error.row]
        message = f"query {query!r}, document {document!r}: {error}"
        raise DataError(message, row=error.row) from None


def _describe_unknown(given: object, role: ValueRole) -> str:
    return (
        f"cannot read {KINDS[role]} from {type(given).__name__}: give a path, "
        f"{{query: {{document: {role}}}}}, a data frame, or rows with query_id, doc_id and "
        f"{'relevance' if role == 'grade' else role}"
    )


def _read_nested(given: Mapping[Any, Any], role: ValueRole) -> GivenRows:
    if all(isinstance(documents, Mapping) for documents in given.values()):
        tables = given.values()
        return GivenRows(
            list(chain.from_iterable(repeat(q, len(table)) for q, table in given.items())),
            list(chain.from_iterable(tables)),
            list(chain.from_iterable(table.values() for table in tables)),
        )
    rows = [
        (query, document, value)
        for query, documents in given.items()
        for document, value in _list_pairs(documents, query, role)
    ]
    queries, given_documents, values = zip(*rows, strict=True) if rows else ((), (), ())
    return GivenRows(queries, given_documents, values)


def _list_pairs(documents: Any, query: object, role: ValueRole) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Yield document and value, for all documents of one query.

    Pairs are taken as they are, records by their fields, and bare ids by their place in the list.
    """
    if isinstance(documents, Mapping):
        yield from documents.items()
        return
    is_unordered = isinstance(documents, AbstractSet)
    if (
        isinstance(documents, str | bytes)
        or not isinstance(documents, Iterable)
        or (is_unordered and role == "score")
    ):
        example = f"{{document: {role}}}, [(document, {role}), …] or [document, …]"
        what = "a set, which has no order" if is_unordered else repr(documents)[:60]
        raise DataError(f"query {query!r}: given {what}: give {example}")
    listed = list(documents)
    for place, item in enumerate(listed):
        if isinstance(item, Mapping):
            where = f"query {query!r}"
            names, _ = _match_fields(list(item), ("document", role), where, item.get)
            yield item[names["document"]], item[names[role]]
        elif isinstance(item, Sequence) and not isinstance(item, str | bytes):
            if len(item) != 2:
                raise DataError(f"query {query!r}: {item!r:.60} is no (document, {role}) pair")
            yield item[0], item[1]
        else:
            yield item, 1 if role == "grade" else float(len(listed) - place)


def _read_frame(frame: Any, role: ValueRole) -> GivenRows:  # noqa: ANN401 - of one of several packages
    names = list(getattr(frame, "column_names", frame.columns))
    index = [name for name in getattr(getattr(frame, "index", None), "names", ()) if name]
    where = type(frame).__name__
    remedy = f"; {', '.join(map(repr, index))} is its index: call reset_index()" if index else ""

    def read(name: Any) -> list[Any]:  # noqa: ANN401 - the name of a column
        column = frame[name]
        for method in ("to_list", "to_pylist", "tolist"):
            if hasattr(column, method):
                return list(getattr(column, method)())
        return list(column)

    fields, notes = _match_fields(names, ("query", "document", role), where, read, remedy)
    column = frame[fields[role]]
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    queries, documents = read(fields["query"]), read(fields["document"])
    is_judged = [role == "score" or not is_blank(value) for value in values]
    if all(is_judged):
        return GivenRows(queries, documents, values, notes, _may_rise(fields[role], role))
    blank = is_judged.count(False)
    note = f"Rows without a grade are left out as unjudged: {blank} of {len(values)}."
    queries, documents = (list(compress(ids, is_judged)) for ids in (queries, documents))
    return GivenRows(queries, documents, values[is_judged], (*notes, note))


def _read_records(given: Iterable[Any], role: ValueRole) -> GivenRows:
    records = list(given)
    if not records:
        return GivenRows((), (), ())
    first = records[0]
    needed = ("query", "document", role)
    names = (
        list(first)
        if isinstance(first, Mapping)
        else list(getattr(first, "_fields", ()) or getattr(first, "__dataclass_fields__", ()))
    )
    if names:
        get = itemgetter if isinstance(first, Mapping) else attrgetter

        def read(name: Any) -> list[Any]:  # noqa: ANN401 - the name of a field
            return list(map(get(name), records))

        fields, notes = _match_fields(names, needed, f"rows of {type(first).__name__}", read)
        queries, documents, values = (read(fields[key]) for key in needed)
        return GivenRows(queries, documents, values, notes, _may_rise(fields[role], role))
    if isinstance(first, Sequence) and not isinstance(first, str | bytes) and len(first) == 3:
        queries, documents, values = map(list, zip(*records, strict=True))
        return GivenRows(queries, documents, values)
    raise DataError(_describe_unknown(given, role))


def _match_fields(
    names: Sequence[Any],
    roles: Sequence[str],
    where: str,
    read: Callable[[Any], Any],
    remedy: str = "",
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Role → the name of its column; and notes.

    Raises:
        DataError: A role has no column, or two that differ.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{where}: two columns are named {twice!r}: keep one")
    fields, notes = {}, tuple[str, ...]()
    for role in roles:
        known = list_candidates(names, role)
        if role == "score" and not known:
            distances = [name for name in names if is_distance(name)]
            known = distances or list_candidates(names, "rank")
        if not known:
            raise DataError(
                f"{where}: no column for the {role} (found: {', '.join(map(str, names))}; known "
                f"names: {', '.join(COLUMN_NAMES[role])}): rename one{remedy}"
            )
        try:
            notes += check_rivals(role, known, read, "keep one of them")
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        fields[role] = known[0]
    return fields, notes


def _may_rise(name: object, role: ValueRole) -> bool:
    """Return whether a column of a run has distances or ranks."""
    return role == "score" and (is_distance(name) or fold_name(name) in COLUMN_NAMES["rank"])


class _TableType(type):
    """The class of ``Qrels`` and ``Run``; also accepts ranx's ``Run(scores, name="bm25")``."""

    if not TYPE_CHECKING:

        def __call__(cls, *given: object, **named: object) -> DocumentTable:
            """Build from fields, or from what :meth:`DocumentTable.from_dict` reads."""
            if 0 < len(given) <= 2:
                return cls.from_dict(*given, **named)
            return super().__call__(*given, **named)

        def __getattr__(cls, name: str) -> object:
            """Refuse a name; that of ranx for reading a file leads to the function that does."""
            reads = f": load_{cls.__name__.lower()}(path) reads a file"
            hint = reads if name == "from_file" else ""
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}{hint}")


class DocumentTable(TableView, metaclass=_TableType):
    """Documents grouped by query; the base of ``Qrels`` and ``Run``, which document the fields."""

    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: IdVocabulary
    documents: IntArray

    @classmethod
    @abstractmethod
    def from_dict(cls, *given: Any, **options: Any) -> Self:  # noqa: ANN401 - each its own
        """Build from a mapping or whatever else holds such rows."""

    @classmethod
    def from_pandas(cls, frame: object, **options: Any) -> Self:  # noqa: ANN401 - of from_dict
        """Build from a data frame of pandas or polars, by the names of its columns.

        Args:
            frame: With a column for the query, the document, and the grade or score.
            options: As for ``from_dict``.
        """
        return cls.from_dict(frame, **options)

    @classmethod
    def from_df(cls, frame: object, **options: Any) -> Self:  # noqa: ANN401 - of from_dict
        """:meth:`from_pandas`, by the name that ranx gives it."""
        return cls.from_dict(frame, **options)

    @classmethod
    def from_dataframe(cls, frame: object, **options: Any) -> Self:  # noqa: ANN401 - of from_dict
        """:meth:`from_pandas`, by another name."""
        return cls.from_dict(frame, **options)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Refuse a name; that of ranx for writing a file leads to the method that does."""
            hint = ": to_trec(path) writes a file" if name == "save" else ""
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}{hint}")

    def __len__(self) -> int:
        """How many queries."""
        return len(self.queries)

    def remember_digest(self, known: str) -> None:
        """Take a digest that was computed before for these contents."""
        object.__setattr__(self, "_digest", known)

    def _nest_values(self, values: NDArray[Any]) -> dict[str, dict[str, Any]]:
        """Query → document → value, in the order of the table."""
        return {
            query: {
                self.vocabulary[document]: value
                for document, value in zip(self.documents[rows], values[rows].tolist(), strict=True)
            }
            for query, rows in query_slices(self.queries, self.offsets)
        }

    def _id_columns(self, limit: int | None) -> dict[str, list[str]]:
        """The query and the document of the first rows."""
        owners = query_of_rows(self.offsets)[:limit].tolist()
        if limit is None:
            names = list(self.vocabulary)
            documents = [names[code] for code in self.documents.tolist()]
        else:
            documents = [self.vocabulary[code] for code in self.documents[:limit].tolist()]
        return {"query": [self.queries[q] for q in owners], "document": documents}


def write_trec(lines: Iterator[tuple[object, ...]], path: Path | str | None) -> str:
    """Rows as TREC writes them, and into a file if one is named.

    Raises:
        DataError: An id contains white space, which ends a column there.
    """
    texts = []
    for fields in lines:
        line = " ".join(map(str, fields))
        if len(line.split()) != len(fields):
            raise DataError(f"TREC's format has no ids with white space: {line!r}")
        texts.append(f"{line}\n")
    text = "".join(texts)
    if path is not None:
        write_atomic(Path(path), text.encode())
    return text

"""What judgments and runs have in common: rows of documents grouped by query, and how they read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.rows.grouped_rows import query_of_rows, query_slices
from fusion_bench.data.rows.ids import IdVocabulary
from fusion_bench.errors import DataError
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.table_view import TableView


class DocumentTable(TableView):
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


def trec_scores(scores: FloatArray, documents: IntArray, offsets: IntArray) -> FloatArray:
    """(N,): scores that give each list its order in any tool that reads TREC runs.

    The scores themselves where their order is that of the ranks (equal scores: the greater
    document id first); otherwise, for the whole run, the number of documents from here down.
    """
    same_query = np.diff(query_of_rows(offsets)) == 0
    falls = np.diff(scores) < 0
    is_tie = (np.diff(scores) == 0) & (np.diff(documents) < 0)
    if (falls | is_tie | ~same_query).all():
        return scores
    return np.repeat(offsets[1:], np.diff(offsets)).astype(np.float64) - np.arange(len(scores))

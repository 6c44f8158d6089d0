"""Judgments, stored by columns: checked on entry, frozen afterwards; ids that have none.

Rows are grouped by query: ``offsets[q]:offsets[q+1]`` are the rows of query q. ``documents`` holds
codes into ``vocabulary``, which is sorted by bytes: a greater code is a greater document id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench.data import grouped_rows
from fusion_bench.data.document_rows import DocumentTable, name_row, read_rows, write_trec
from fusion_bench.data.id_rules import describe_rule
from fusion_bench.data.ordering import IntArray, make_readonly
from fusion_bench.data.read_options import (
    GradeOptions,
    GradeRule,
    order_by_value,
    parse_grades,
)
from fusion_bench.errors import DataError
from fusion_bench.util.formatting import Columns, pluralize

#: A query id, and the judged id that it resembles; None = none.
UnmatchedId = tuple[str, str | None]

#: Most ids that a message names.
MOST_NAMED = 3
#: With more ids on a side, only equal letters and numbers are matched.
MAX_COMPARED = 2_000
#: Smallest similarity ratio of two spellings of one id.
MIN_SIMILARITY = 0.8


def find_unmatched_ids(
    returned: Collection[str], judged: Collection[str]
) -> tuple[UnmatchedId, ...]:
    """The first ids that are not judged, those that resemble a judged one first.

    Args:
        returned: Query ids of a list.
        judged: Query ids of the judgments.
    """
    unknown = sorted(set(returned).difference(judged))
    free = sorted(set(judged).difference(returned))
    same = {_normalize_id(name): name for name in reversed(free)}
    looked = unknown if same else []
    near = {name: same[plain] for name in looked if (plain := _normalize_id(name)) in same}
    if unknown and len(unknown) <= MAX_COMPARED >= len(free):
        import difflib  # not needed until a name is unknown

        for name in unknown[: MOST_NAMED * MOST_NAMED]:
            close = difflib.get_close_matches(name, free, n=1, cutoff=MIN_SIMILARITY)
            near |= dict.fromkeys([name], close[0]) if close and name not in near else {}
    order = sorted(unknown, key=lambda name: name not in near)
    return tuple((name, near.get(name)) for name in order[:MOST_NAMED])


def format_unmatched_ids(unmatched: Collection[UnmatchedId], total: int) -> str:
    """``'Q5' (did you mean 'q05'?), 'x' and 7 more``."""
    words = [
        repr(name) if meant is None else f"{name!r} (did you mean {meant!r}?)"
        for name, meant in unmatched
    ]
    more = f" and {total - len(unmatched):,} more" if total > len(unmatched) else ""
    return ", ".join(words) + more


def _normalize_id(name: str) -> str:
    """The id without case, leading zeros and other characters than letters and digits."""
    parts = re.findall(r"[^\W\d_]+|\d+", name.casefold())
    return " ".join(part.lstrip("0") or "0" if part.isdecimal() else part for part in parts)


def _merge_grades(
    grouped: grouped_rows.GroupedRows,
    grades: IntArray,
    order: IntArray,
    starts: IntArray,
    rule: GradeRule,
) -> tuple[IntArray, list[str]]:
    """The grade of each pair of query and document that has several, and notes on them.

    Args:
        grouped: One judgment a row.
        grades: Shape (N,), of the same rows.
        order: Shape (N,): the rows by query and document, in file order inside a pair.
        starts: Shape (M,): where each pair begins among them.
        rule: Which grade counts.

    Raises:
        DataError: Grades differ and no rule says which counts, or their mean is no whole grade.
    """
    sorted_grades, counts = grades[order], np.diff(starts, append=len(order))
    sums = np.add.reduceat(sorted_grades, starts)
    merged = {
        "min": np.minimum.reduceat(sorted_grades, starts),
        "max": np.maximum.reduceat(sorted_grades, starts),
        "first": sorted_grades[starts],
        "mean": sums // counts,
    }
    differs = merged["min"] != merged["max"]
    refused = differs if rule == "error" else (sums % counts != 0) & (rule == "mean")
    if refused.any():
        pair = int(np.argmax(refused))
        rows = order[starts[pair] :][: counts[pair]]
        second = int(rows[np.argmax(grades[rows] != grades[rows[0]])])
        query = int(grouped_rows.query_of_rows(grouped.offsets)[second])
        remedy = "their mean is no whole grade: use min, max or first"
        if rule == "error":
            remedy = (
                "keep one row, or choose a rule: --on-duplicate min, max, mean or first "
                "('on_duplicate' of 'qrels' in dataset.yaml)"
            )
        raise DataError(
            f"document {grouped.vocabulary[int(grouped.documents[second])]!r} has the grades "
            f"{', '.join(map(str, grades[rows].tolist()))} for query {grouped.queries[query]!r}: "
            f"{remedy}",
            row=grouped.original_row(second),
        )
    notes, same = [], int((counts - 1)[~differs].sum())
    if same:
        verb = "was" if same == 1 else "were"
        notes.append(f"{pluralize(same, 'identical judgment')} {verb} dropped")
    if many := int(differs.sum()):
        count = pluralize(many, "document")
        notes.append(f"{count} with different grades for one query: 'on_duplicate: {rule}' decides")
    return merged.get(rule, merged["first"]), notes


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(DocumentTable):
    """Judgements: query → document → grade. Grade 0 = judged not relevant, absent = unjudged.

    Attributes:
        queries: The Q judged queries, sorted by bytes, so that nothing depends on a file's order.
        offsets: Shape (Q+1,).
        vocabulary: Distinct document ids, sorted by bytes.
        documents: Shape (J,): codes into ``vocabulary``.
        grades: Shape (J,): integer grades, -2^53 to 2^53; negative counts as not relevant.
        notes: What was read in another way than a reader of the file may expect; each a sentence.
    """

    queries: tuple[str, ...]
    offsets: IntArray
    vocabulary: grouped_rows.IdVocabulary
    documents: IntArray
    grades: IntArray
    notes: tuple[str, ...] = ()
    _digest: str | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.offsets, self.documents, self.grades):
            make_readonly(array)

    @classmethod
    def from_rows(
        cls,
        queries: Sequence[str] | grouped_rows.CategoricalIds,
        documents: Sequence[str] | grouped_rows.CategoricalIds,
        grades: Sequence[str | float] | NDArray[np.number],
        *,
        options: GradeOptions | None = None,
    ) -> Self:
        """Build from parallel columns, one judgement a row.

        Raises:
            DataError: Columns of different lengths, no row, an empty id, or a pair judged
                differently without a rule for it; names the row.
        """
        options = options or GradeOptions()
        grouped_rows.refuse_ragged(queries=queries, documents=documents, grades=grades)
        grouped = grouped_rows.group_rows(queries, documents, "judgement", sort_queries=True)
        if options.ids is not None:
            grouped = grouped_rows.change_ids(grouped, options.ids, is_whole=True)
        values = grouped.take_column(parse_grades(grades, options.grades))
        order = order_by_value(grouped.documents, grouped.offsets)
        offsets = grouped.offsets
        notes = (
            [] if options.ids is None else [f"document ids are read {describe_rule(options.ids)}"]
        )
        starts = grouped_rows.find_starts(grouped, order)
        if len(starts) == len(order):
            values = values[order]
        else:
            values, said = _merge_grades(grouped, values, order, starts, options.on_duplicate)
            notes += said
            order = order[starts]
            owners = grouped_rows.query_of_rows(offsets)[order]
            offsets = grouped_rows.to_offsets(np.bincount(owners, minlength=len(offsets) - 1))
        documents_of = grouped.documents[order]
        return cls(grouped.queries, offsets, grouped.vocabulary, documents_of, values, tuple(notes))

    @classmethod
    def from_dict(cls, judgments: object, *, options: GradeOptions | None = None) -> Self:
        """Build from query → document → grade, or whatever else holds judgments.

        Args:
            judgments: A mapping, a data frame, ``Qrels`` of ranx, rows of ir_measures or
                ir_datasets; see :mod:`fusion_bench.data.document_rows`. A document without a grade
                is relevant: its grade is 1.
            options: How its rows become grades.

        Raises:
            DataError: It is of another kind, or breaks a rule of :meth:`from_rows`.

        >>> Qrels.from_dict({"q1": {"d1": 2, "d2": 0}, "q2": ["d3"]})
        Qrels(2 queries, 3 judgments, grades 0 to 2)
        """
        rows = read_rows(judgments, "grade")
        with name_row(rows):
            made = cls.from_rows(*rows[:3], options=options)
        return replace(made, notes=(*rows.notes, *made.notes))

    @classmethod
    def without_judgments(cls, queries: Collection[str]) -> Self:
        """These queries, of which no document is judged."""
        nothing = np.zeros(0, dtype=np.int64)
        ids = grouped_rows.IdVocabulary(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))
        empty = cls((), np.zeros(1, dtype=np.int64), ids, nothing, nothing)
        return empty.add_queries(queries)

    def add_queries(self, queries: Collection[str]) -> Self:
        """Add queries, of which no document is judged."""
        names = tuple(sorted({*self.queries, *queries}))  # code points sort as UTF-8 bytes do
        sizes = dict(zip(self.queries, np.diff(self.offsets).tolist(), strict=True))
        counts = np.array([sizes.get(name, 0) for name in names], dtype=np.int64)
        return replace(self, queries=names, offsets=grouped_rows.to_offsets(counts))

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Query → document → grade, as other libraries take it."""
        return self._nest_values(self.grades)

    def to_trec(self, path: Path | str | None = None) -> str:
        """The judgments in TREC's format; written to a file if one is named."""
        ids = self._id_columns(None)
        rows = zip(ids["query"], ids["document"], self.grades.tolist(), strict=True)
        return write_trec(((query, 0, document, grade) for query, document, grade in rows), path)

    def _summary(self) -> str:
        queries, grades = pluralize(len(self), "query"), self.grades
        judgments = pluralize(len(grades), "judgment")
        if not len(grades):
            return f"Qrels({queries}, no judgments)"
        return f"Qrels({queries}, {judgments}, grades {grades.min()} to {grades.max()})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return {**self._id_columns(limit), "grade": self.grades[:limit].tolist()}

    def digest(self) -> str:
        """SHA-256 over the contents, the same for any file format and row order of queries."""
        if self._digest is None:
            self.remember_digest(
                grouped_rows.hash_table(
                    self.queries, self.offsets, self.documents, self.grades, self.vocabulary
                )
            )
        return cast("str", self._digest)

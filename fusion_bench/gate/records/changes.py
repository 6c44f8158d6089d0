"""What differs between a baseline and a candidate: lists, ranks and the values of queries."""

from __future__ import annotations

from typing import Any

from fusion_bench.config.files.json_records import StoredRecord


class ListChange(StoredRecord):
    """A run or rerank list of the baseline that is no longer the same.

    Attributes:
        collection: The dataset.
        part: ``runs/NAME`` or ``rerank/NAME``.
        change: ``contents``, ``missing``, or the option that changed, such as ``roles``.
        before: Digest or option of the baseline.
        after: The same of the candidate; None where it is missing.
    """

    collection: str
    part: str
    change: str
    before: Any
    after: Any

    @property
    def description(self) -> str:
        """What changed, with both values."""
        if self.change == "missing":
            return f"{self.collection}: {self.part} of the baseline is missing from the dataset"
        if self.change == "contents":
            sides = (str(self.before)[:12], str(self.after)[:12])
            text = f"contents of {self.part} changed"
        else:
            sides = (repr(self.before), repr(self.after))
            text = f"{self.change} of {self.part} changed"
        return f"{self.collection}: {text}: baseline {sides[0]}, candidate {sides[1]}"


class DocumentChange(StoredRecord):
    """The ranks of a relevant document before and after.

    Attributes:
        document: Its id.
        grade: Its grade.
        rank_before: Old rank; None = not in the list.
        rank_after: New rank; None = not in the list.
        cut_rank_before: Old rank below ``top_k``; None = ``top_k`` does not remove it.
        cut_rank_after: New rank below ``top_k``; None likewise.
        cause: The term that moved it.
        title: Its title, or the beginning of its text; empty where the dataset has neither.
    """

    document: str
    grade: int
    rank_before: int | None
    rank_after: int | None
    cut_rank_before: int | None = None
    cut_rank_after: int | None = None
    cause: str
    title: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether its rank changed."""
        return self.rank_before != self.rank_after


class QueryRegression(StoredRecord):
    """A query whose value fell.

    Attributes:
        collection: The dataset.
        query: Its id.
        measure: The first measure of the policy.
        value_before: Its old value.
        value_after: Its new value.
        top_k: Length limit of the old and of the new list; None = no limit.
        documents: Its relevant documents: those that moved first.
        text: The beginning of the query's text; empty where the dataset has none.
        has_old_ranks: Whether the old ranks are known; after a change of the lists they are not.
        trial: The candidate's trial that the ranks are of, from 1; None where it has one.
    """

    collection: str
    query: str
    measure: str
    value_before: float
    value_after: float
    top_k: tuple[int | None, int | None] = (None, None)
    documents: tuple[DocumentChange, ...]
    text: str = ""
    has_old_ranks: bool = True
    trial: int | None = None

"""Columns that say how much is judged, and what the rest could make of a mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from fusion_bench.evaluation.report_records.results.system import CompletionBounds
from fusion_bench.report.page import Column
from fusion_bench.util.formatting import format_number, format_percent, list_names

#: Header of the least and the greatest mean over completions.
BOUNDS_HEADER = "if judged"
#: What that column means.
BOUNDS_NOTE = (
    f"{BOUNDS_HEADER} = least and greatest mean if each unjudged document of the system in its "
    "top k had some grade of the scale, ideals computed again."
)


@dataclass(frozen=True)
class JudgedColumns:
    """``Judged@10`` and ``if judged`` of the rows of a table; none with complete judgments.

    Attributes:
        rows: What is known of each row; None = nothing.
    """

    rows: tuple[CompletionBounds | None, ...]

    @classmethod
    def of_rows(cls, rows: Iterable[CompletionBounds | None]) -> JudgedColumns:
        """The columns of a table with these rows."""
        return cls(tuple(rows))

    @cached_property
    def _known(self) -> list[CompletionBounds]:
        return [bounds for bounds in self.rows if bounds is not None]

    @cached_property
    def _has_ends(self) -> bool:
        return any(bounds.low is not None for bounds in self._known)

    @property
    def share_header(self) -> str:
        """``Judged@10``, or ``Judged@k`` where the depths of the rows differ."""
        depths = {bounds.depth for bounds in self._known}
        return f"Judged@{depths.pop() if len(depths) == 1 else 'k'}"

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The share; the least and greatest mean, where some row has them."""
        headers = [self.share_header] * bool(self._known) + [BOUNDS_HEADER] * self._has_ends
        return tuple(Column(header, is_optional=True) for header in headers)

    def cells(self, bounds: CompletionBounds | None) -> tuple[str, ...]:
        """The cells of one row; blank where nothing is known."""
        cells = ("", "") if bounds is None else (format_percent(bounds.judged), format_ends(bounds))
        return cells[: len(self.columns)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the columns mean, in one note; empty where there are none."""
        if not self.columns:
            return ()
        depth = "; k is the measure's cutoff, or 10" if self.share_header.endswith("k") else ""
        share = f"{self.share_header} = share of judged documents{depth}."
        return (f"{share} {BOUNDS_NOTE}" if self._has_ends else share,)


def format_ends(bounds: CompletionBounds) -> str:
    """``0.4167…1.0000``; blank where they are not known."""
    if bounds.low is None:
        return ""
    return f"{format_number(bounds.low)}…{format_number(bounds.high)}"


def describe_judged(bounds: CompletionBounds) -> str:
    """``Judged@10 86.0 %, if judged 0.4167…1.0000``."""
    share = f"Judged@{bounds.depth} {format_percent(bounds.judged)}"
    return share if bounds.low is None else f"{share}, {BOUNDS_HEADER} {format_ends(bounds)}"


def note_unknown_ends(bounds: Iterable[tuple[str, CompletionBounds | None]]) -> Iterator[str]:
    """That no completions are known of some measures.

    Args:
        bounds: Measures, and what is known of a system on each.
    """
    unknown = {name: None for name, each in bounds if each is not None and each.low is None}
    if unknown:
        yield f"{BOUNDS_HEADER} is not known for {list_names([*unknown])}."

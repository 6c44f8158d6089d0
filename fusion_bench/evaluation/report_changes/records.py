"""The change from one report to the next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from fusion_bench.stats.comparison import Comparison
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView, list_columns

#: What a table says of each system.
NUMBERS: Final = (
    *("then", "now", "difference", "low", "high", "p_adjusted", "better", "worse"),
    *("answer", "answer_then", "answer_now"),
)


@dataclass(frozen=True)
class SettingChange:
    """One value of a configuration.

    Attributes:
        path: Where it stands, such as ``fusion.k``.
        then: As JSON; None = it was absent.
        now: As JSON; None = it is absent.
    """

    path: str
    then: str | None
    now: str | None


@dataclass(frozen=True)
class SystemChange:
    """One system of either report, on the primary measure of the new one.

    Attributes:
        name: Its name.
        has_old: Whether the old report has it.
        has_new: Whether the new report has it.
        config: What changed in its configuration; empty where one report lacks it.
        then: Mean in the old report, over all of its queries; None = it has none of this measure.
        now: Mean in the new report.
        difference: Mean of now − then over the queries that both reports have; None = no such
            query, or one report lacks the system.
        better: Queries among them whose value is greater now.
        worse: Queries among them whose value is less now.
        answer_then: What the comparison with the baseline showed.
        answer_now: What it shows now.
        comparison: Now against then over the same queries, see ``paired_changes``; None = nothing
            was tested.
    """

    name: str
    has_old: bool = True
    has_new: bool = True
    config: tuple[SettingChange, ...] = ()
    then: float | None = None
    now: float | None = None
    difference: float | None = None
    better: int = 0
    worse: int = 0
    answer_then: str | None = None
    answer_now: str | None = None
    comparison: Comparison | None = None

    @property
    def low(self) -> float | None:
        """Lower end of the interval of the difference; None where nothing was tested."""
        return None if self.comparison is None else self.comparison.low

    @property
    def high(self) -> float | None:
        """Upper end."""
        return None if self.comparison is None else self.comparison.high

    @property
    def p_adjusted(self) -> float | None:
        """Over all systems and collections of the two reports."""
        return None if self.comparison is None else self.comparison.p_adjusted

    @property
    def answer(self) -> str | None:
        """What now against then shows."""
        return None if self.comparison is None else self.comparison.answer

    @property
    def status(self) -> Literal["both", "new", "gone"]:
        """Which of the reports have it."""
        if self.has_old and self.has_new:
            return "both"
        return "new" if self.has_new else "gone"

    @property
    def is_changed(self) -> bool:
        """Whether anything about it is not as it was."""
        moved = bool(self.better or self.worse) or self.answer_then != self.answer_now
        return moved or bool(self.config) or self.status != "both"


@dataclass(frozen=True)
class QueryChange:
    """A query, and the system on which its value changed most.

    Attributes:
        query: Its id.
        system: The system.
        then: Its value in the old report.
        now: Its value in the new one.
    """

    query: str
    system: str
    then: float
    now: float


@dataclass(frozen=True, repr=False)
class QueryChanges(TableView):
    """The queries of a collection whose values changed most.

    Attributes:
        rows: One a query, the greatest change first.
        changed: How many queries changed at all.
    """

    rows: tuple[QueryChange, ...] = ()
    changed: int = 0

    def _summary(self) -> str:
        return f"QueryChanges({len(self.rows):,} of {pluralize(self.changed, 'changed query')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        return list_columns(QueryChange, self.rows[:limit])


@dataclass(frozen=True, repr=False)
class CollectionChange(TableView):
    """One collection of either report.

    Attributes:
        name: The dataset.
        status: Which of the reports have it.
        measure: The primary measure of the new report.
        data: Parts of the data that both reports use and whose contents differ, such as
            ``qrels`` or ``runs/bm25``.
        queries_added: Queries that only the new report has.
        queries_removed: Queries that only the old report has.
        systems: Every system of either report, in the order of the new one.
        queries: The queries whose values changed most.
    """

    name: str
    status: Literal["both", "new", "gone"]
    measure: str
    data: tuple[str, ...] = ()
    queries_added: int = 0
    queries_removed: int = 0
    systems: tuple[SystemChange, ...] = ()
    queries: QueryChanges = QueryChanges()

    @property
    def is_changed(self) -> bool:
        """Whether anything about it is not as it was."""
        data = self.data or self.queries_added or self.queries_removed
        systems = any(system.is_changed for system in self.systems)
        return self.status != "both" or bool(data) or systems

    def _summary(self) -> str:
        changed = sum(system.is_changed for system in self.systems)
        return f"CollectionChange({self.name!r}, {changed:,} of {len(self.systems):,} systems)"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a system."""
        rows = self.systems[:limit]
        names = ("name", "status", *NUMBERS)
        return {
            **{name: [getattr(row, name) for row in rows] for name in names},
            "config": [", ".join(change.path for change in row.config) for row in rows],
        }


@dataclass(frozen=True, repr=False)
class ReportChange(TableView):
    """What changed from one report to the next.

    Attributes:
        then: When the old report was made, UTC.
        now: When the new one was.
        settings: Changed settings of the experiment, apart from its systems.
        versions: Changed versions of packages and of the engine.
        collections: Every collection of either report, in the order of the new one.
    """

    then: str
    now: str
    settings: tuple[SettingChange, ...]
    versions: tuple[SettingChange, ...]
    collections: tuple[CollectionChange, ...]

    @property
    def is_changed(self) -> bool:
        """Whether anything but the versions and the time is not as it was."""
        return bool(self.settings) or any(each.is_changed for each in self.collections)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return asdict(self)

    def _summary(self) -> str:
        changed = sum(each.is_changed for each in self.collections)
        count = f"{changed:,} of {pluralize(len(self.collections), 'collection')} changed"
        return f"ReportChange({self.then} to {self.now}, {count})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a collection and system."""
        tables = [each._table_columns() for each in self.collections]
        names = [each.name for each in self.collections for _ in each.systems]
        return {
            "collection": names[:limit],
            **{
                key: [value for table in tables for value in table[key]][:limit]
                for key in ("name", "status", *NUMBERS, "config")
            },
        }

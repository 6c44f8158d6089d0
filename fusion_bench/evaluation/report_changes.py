"""What changed from one report of an experiment to the next: settings, systems, values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from pydantic_core import to_jsonable_python

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.stats.comparison import Comparison
from fusion_bench.stats.intervals import exact_mean, paired_difference
from fusion_bench.util.formatting import Columns, TableView, list_columns, pluralize

#: What a table says of each system.
NUMBERS: Final = (
    *("then", "now", "difference", "low", "high", "p", "better", "worse"),
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
        comparison: Now against then over the same queries; None = nothing was tested.
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
    def p(self) -> float | None:
        """Over all systems and collections of the two reports."""
        return None if self.comparison is None else self.comparison.p

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
        data: dict[str, Any] = to_jsonable_python(self, inf_nan_mode="null")
        return data

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


def _find_setting_changes(
    then: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[SettingChange, ...]:
    """The values that differ, in the order of the new configuration.

    Args:
        then: Any JSON.
        now: Any JSON.
    """
    old, new = dict(_flatten(then)), dict(_flatten(now))
    paths = dict.fromkeys([*new, *old])
    return tuple(
        SettingChange(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    )


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and JSON text of each value; a list is one value."""
    for key, item in value.items():
        path = f"{prefix}{key}"
        if isinstance(item, Mapping) and item:
            yield from _flatten(item, f"{path}.")
        else:
            yield path, json.dumps(_normalize(item), ensure_ascii=False, sort_keys=True)


def _normalize(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Equal numbers as one text: 60.0 is 60."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_normalize(item) for item in value] if isinstance(value, list | tuple) else value


#: Queries that are listed of each collection.
QUERIES: Final = 20


#: The values of one system on the n queries that both reports have: (n,) then, and (n,) now.
_SharedValues: TypeAlias = tuple[FloatArray, FloatArray]


def find_changes(old: Report, new: Report, *, queries: int = QUERIES) -> ReportChange:
    """What changed between two reports of one experiment.

    Nothing is tested: for intervals and answers see ``compare_reports``.

    Args:
        old: The report before.
        new: The report now.
        queries: The greatest number of changed queries to list for each collection.
    """
    before = {each.name: each for each in old.collections}
    after = {each.name: each for each in new.collections}
    return ReportChange(
        then=old.provenance.created,
        now=new.provenance.created,
        settings=_find_setting_changes(_settings_of(old), _settings_of(new)),
        versions=_find_setting_changes(old.provenance.versions, new.provenance.versions),
        collections=(
            *(
                _compare(before[name], collection, queries)
                if name in before
                else CollectionChange(name, "new", collection.primary_measure)
                for name, collection in after.items()
            ),
            *(
                CollectionChange(name, "gone", collection.primary_measure)
                for name, collection in before.items()
                if name not in after
            ),
        ),
    )


def _settings_of(report: Report) -> dict[str, object]:
    return {**report.settings, "v2_enabled": report.provenance.v2_enabled}


def _compare(old: Collection, new: Collection, queries: int) -> CollectionChange:
    before, after = old.competitors, new.competitors
    known = set(old.queries)
    shared = [query for query in new.queries if query in known]
    measure = new.primary_measure
    rows = []
    for collection in (old, new):
        index = {query: q for q, query in enumerate(collection.queries)}
        rows.append(np.array([index[query] for query in shared], dtype=np.int64))
    values: dict[str, _SharedValues] = {}
    for name, row in after.items():
        if shared and name in before and measure in before[name].measures:
            sides = (before[name].measures[measure], row.measures[measure])
            then, now = (
                np.array(side.values, dtype=np.float64)[index]
                for side, index in zip(sides, rows, strict=True)
            )
            values[name] = then, now
    parts = [part for part in new.digests if part in old.digests]
    return CollectionChange(
        name=new.name,
        status="both",
        measure=measure,
        data=tuple(part for part in parts if new.digests[part] != old.digests[part]),
        queries_added=len(new.queries) - len(shared),
        queries_removed=len(old.queries) - len(shared),
        systems=tuple(
            _compare_systems(old, new, before.get(name), after.get(name), values.get(name))
            for name in dict.fromkeys([*after, *before])
        ),
        queries=_list_queries(shared, values, queries),
    )


def _compare_systems(
    old: Collection,
    new: Collection,
    before: SystemResult | None,
    after: SystemResult | None,
    values: _SharedValues | None,
) -> SystemChange:
    """One system; one of the reports may lack it, but not both."""
    name = "" if (row := after or before) is None else row.name
    measure = new.primary_measure
    answers = [each.comparison(name, measure) for each in (old, new)]
    means = [
        None if row is None or measure not in row.measures else row.measures[measure].mean
        for row in (before, after)
    ]
    is_shared = before is not None and after is not None
    configs = [{} if row is None else row.config or {} for row in (before, after)]
    difference = np.zeros(0) if values is None else paired_difference(values[1], values[0])
    return SystemChange(
        name=name,
        has_old=before is not None,
        has_new=after is not None,
        config=_find_setting_changes(*configs) if is_shared else (),
        then=means[0],
        now=means[1],
        difference=exact_mean(difference) if len(difference) else None,
        better=int((difference > 0).sum()),
        worse=int((difference < 0).sum()),
        answer_then=None if answers[0] is None else answers[0].answer,
        answer_now=None if answers[1] is None else answers[1].answer,
    )


def _list_queries(shared: list[str], values: dict[str, _SharedValues], limit: int) -> QueryChanges:
    """The queries that changed most, each with the system on which it changed most."""
    if not values:
        return QueryChanges()
    names = list(values)
    differences = [paired_difference(now, then) for then, now in values.values()]
    table = np.nan_to_num(np.stack(differences))
    greatest = np.abs(table).max(axis=0)
    changed = int((greatest > 0).sum())
    order = np.argsort(-greatest, kind="stable")[: min(limit, changed)]
    rows = []
    for q in order.tolist():
        name = names[int(np.abs(table[:, q]).argmax())]
        then, now = values[name]
        rows.append(QueryChange(shared[q], name, float(then[q]), float(now[q])))
    return QueryChanges(tuple(rows), changed)

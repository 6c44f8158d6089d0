"""Compare a report with the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.report_changes.records import (
    CollectionChange,
    QueryChange,
    QueryChanges,
    ReportChange,
    SystemChange,
)
from fusion_bench.evaluation.report_changes.setting_changes import find_setting_changes
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.system import SystemResult
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.intervals import exact_mean

#: Queries that are listed of each collection.
QUERIES: Final = 20


class _SharedValues(NamedTuple):
    """The values of one system on the n queries that both reports have, each (n,)."""

    then: FloatArray
    now: FloatArray

    @property
    def difference(self) -> FloatArray:
        return paired_difference(self.now, self.then)


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
        settings=find_setting_changes(_settings_of(old), _settings_of(new)),
        versions=find_setting_changes(old.provenance.versions, new.provenance.versions),
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
    values = dict(_share_values(old, new, shared))
    parts = [part for part in new.digests if part in old.digests]
    return CollectionChange(
        name=new.name,
        status="both",
        measure=new.primary_measure,
        data=tuple(part for part in parts if new.digests[part] != old.digests[part]),
        queries_added=len(new.queries) - len(shared),
        queries_removed=len(old.queries) - len(shared),
        systems=tuple(
            _compare_systems(old, new, before.get(name), after.get(name), values.get(name))
            for name in dict.fromkeys([*after, *before])
        ),
        queries=_list_queries(shared, values, queries),
    )


def _share_values(
    old: Collection, new: Collection, shared: list[str]
) -> Iterator[tuple[str, _SharedValues]]:
    """The systems of both reports; none where the old one has not the measure, or no query."""
    measure = new.primary_measure
    before = old.competitors
    rows = []
    for collection in (old, new):
        index = {query: q for q, query in enumerate(collection.queries)}
        rows.append(np.array([index[query] for query in shared], dtype=np.int64))
    for name, row in new.competitors.items():
        if shared and name in before and measure in before[name].measures:
            results = (before[name].measures[measure], row.measures[measure])
            yield (
                name,
                _SharedValues(
                    *(
                        np.array(result.values, dtype=np.float64)[index]
                        for result, index in zip(results, rows, strict=True)
                    )
                ),
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
    difference = np.zeros(0) if values is None else values.difference
    return SystemChange(
        name=name,
        has_old=before is not None,
        has_new=after is not None,
        config=find_setting_changes(*configs) if is_shared else (),
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
    table = np.nan_to_num(np.stack([each.difference for each in values.values()]))
    greatest = np.abs(table).max(axis=0)
    changed = int((greatest > 0).sum())
    order = np.argsort(-greatest, kind="stable")[: min(limit, changed)]
    rows = []
    for q in order.tolist():
        name = names[int(np.abs(table[:, q]).argmax())]
        pair = values[name]
        rows.append(QueryChange(shared[q], name, float(pair.then[q]), float(pair.now[q])))
    return QueryChanges(tuple(rows), changed)

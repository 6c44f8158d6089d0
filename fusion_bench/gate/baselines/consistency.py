"""Whether the parts of a baseline agree, such as its queries, its values and its history.

The checksum finds an edit. These rules find what a checksum made anew would hide, and keep a file
that no version wrote from ending anywhere but in one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final

import numpy as np

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.stored_reports.columns import ROUNDING, check_column
from fusion_bench.experiment.gate_settings import GatePolicy
from fusion_bench.gate.baselines.record import Baseline, CollectionBaseline, digest_json
from fusion_bench.gate.unjudged_values import StoredUnjudged
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.stats.intervals import exact_mean

#: Parts that every collection is loaded from.
REQUIRED_DIGESTS: Final = ("qrels",)


def find_inconsistencies(baseline: Baseline) -> Iterator[str]:
    """What no version of this package would have written; nothing where all parts agree."""
    try:
        parse_model(GatePolicy, baseline.policy, lambda path: ".".join(map(str, ("policy", *path))))
    except ConfigError as error:
        yield str(error)
    for place, collections in (
        ("collections", baseline.collections),
        ("anchor.collections", baseline.anchor.collections),
    ):
        names = [record.collection for record in collections]
        if not names or len(set(names)) < len(names):
            yield f"{place}: different collections are needed, given {names}"
        for record in collections:
            for problem in _check_collection(record):
                yield f"{place}: {record.collection}: {problem}"
    yield from _check_anchor(baseline)
    yield from _check_newest_update(baseline)


def _check_collection(record: CollectionBaseline) -> Iterator[str]:
    queries = record.queries
    repeated = [query for query, count in Counter(queries).items() if count > 1]
    if not queries or repeated:
        yield f"queries: different ids are needed, given {repeated[:1] or 'none'}"
    absent = {*REQUIRED_DIGESTS, *record.lists}.difference(record.digests)
    if absent:
        yield f"digests: none of {', '.join(sorted(absent))}"
    if record.values.keys() != record.definitions.keys():
        yield "values: the measures are not those of the definitions"
    yield from _check_columns("values", record.values, len(queries))
    yield from _check_trials(record)
    if record.unjudged is not None:
        yield from _check_unjudged(record.unjudged, record.values.keys(), len(queries))


def _check_trials(record: CollectionBaseline) -> Iterator[str]:
    """The values are the means over the trials; a measure has at least 2, or none."""
    for name, trials in record.trials.items():
        for row in trials:
            yield from _check_columns("trials", {name: row}, len(record.queries))
        values = record.values.get(name)
        if values is None or len(trials) < 2 or any(len(row) != len(values) for row in trials):
            yield f"trials.{name}: at least 2 trials of a measure with values are needed"
        elif not np.allclose(np.mean(trials, axis=0), values, rtol=0, atol=ROUNDING):
            yield f"trials.{name}: their means are not the values"


def _check_unjudged(unjudged: StoredUnjudged, measures: Set[str], count: int) -> Iterator[str]:
    if unjudged.judged_only and not unjudged.judged_only.keys() >= measures:
        yield "unjudged.judged_only: a measure is missing"
    yield from _check_columns("unjudged", {"share": unjudged.share}, count)
    yield from _check_columns("unjudged.judged_only", unjudged.judged_only, count)
    yield from _check_columns("unjudged.filled", unjudged.filled, count)


def _check_columns(
    place: str, columns: Mapping[str, Sequence[float | None]], count: int
) -> Iterator[str]:
    """Columns with a value a query, in the measure's range."""
    for name, column in columns.items():
        has_range = name == "share" or is_bounded(name)
        yield from check_column(f"{place}.{name}", column, count, is_bounded=has_range)


def _check_anchor(baseline: Baseline) -> Iterator[str]:
    """The anchor has values for each collection, measure and query of the baseline."""
    anchor = baseline.anchor.by_collection
    for record in baseline.collections:
        old = anchor.get(record.collection)
        if old is None:
            yield f"anchor.collections: no {record.collection}"
        elif set(old.queries) != set(record.queries):
            yield f"anchor.collections: {record.collection}: queries: not those of the baseline"
        elif not old.values.keys() >= record.values.keys():
            yield f"anchor.collections: {record.collection}: values: a measure is missing"


def _check_newest_update(baseline: Baseline) -> Iterator[str]:
    """The newest update is of these values and of this configuration."""
    newest = baseline.history[-1]
    if newest.config_sha256 != digest_json(baseline.config):
        yield "config: not the configuration of the newest update in the history"
    for record in baseline.collections:
        means = newest.means.get(record.collection, {})
        for name, column in record.values.items():
            mean = means.get(name)
            if not column or mean is None or abs(exact_mean(np.array(column)) - mean) > ROUNDING:
                yield (
                    f"collections: {record.collection}: values.{name}: their mean is not that of "
                    "the newest update in the history"
                )

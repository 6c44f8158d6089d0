"""Whether the numbers of a report agree: values with their means, and means with differences.

A file that somebody edited would otherwise be shown, compared and planned with as if measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import create_model

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.compare_collections import INFERENCE_KEYS
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.evaluation.stored_reports.columns import ROUNDING, check_range
from fusion_bench.evaluation.stored_reports.system_consistency import check_system, find_repeated
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.measures.bounds import is_bounded
from fusion_bench.util.formatting import pluralize

_FIELDS: Final[dict[str, Any]] = {
    name: (Experiment.model_fields[name].annotation, Experiment.model_fields[name])
    for name in INFERENCE_KEYS
}
#: The settings with which systems of a report are compared again, by the rules of an experiment.
_InferenceSettings: Final = create_model("_InferenceSettings", __base__=StrictModel, **_FIELDS)


def find_inconsistencies(report: Report) -> Iterator[str]:
    """What no evaluation would have written, each with its place; nothing where all agrees."""
    yield from _check_settings(report.settings)
    if not report.collections:
        yield "collections: at least one is needed"
    names = [each.name for each in report.collections]
    if repeated := find_repeated(names):
        yield f"collections: {repeated!r} stands there twice"
    for number, collection in enumerate(report.collections):
        for problem in _check_collection(collection):
            yield f"collections.{number}.{problem}"


def _check_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    given = {name: settings[name] for name in INFERENCE_KEYS if name in settings}
    try:
        parse_model(_InferenceSettings, given, lambda path: f"settings.{path[0]}")
    except ConfigError as error:
        yield str(error)


def _check_collection(collection: Collection) -> Iterator[str]:
    yield from _check_queries(collection)
    names: dict[str, Sequence[str]] = {
        "queries": collection.queries,
        "measures": collection.measures,
        "systems": [row.name for row in collection.systems],
    }
    for place, listed in names.items():
        if not listed:
            yield f"{place}: at least one is needed"
        if repeated := find_repeated(listed):
            yield f"{place}: {repeated!r} stands there twice"
    if collection.baseline not in collection.competitors:
        yield f"baseline: no system {collection.baseline!r}"
    for number, row in enumerate(collection.systems):
        for problem in check_system(collection, row):
            yield f"systems.{number}.{problem}"
    for number, comparison in enumerate(collection.comparisons):
        for problem in _check_comparison(collection, comparison):
            yield f"comparisons.{number}.{problem}"


def _check_queries(collection: Collection) -> Iterator[str]:
    """What is known of the queries is known of each."""
    columns = {"types": collection.types, "groups": collection.groups}
    columns |= {f"slices.{name}": values for name, values in collection.slices.items()}
    for place, column in columns.items():
        if len(column) != len(collection.queries):
            count = pluralize(len(collection.queries), "query")
            yield f"{place}: {len(column)} entries for {count}"


def _check_comparison(collection: Collection, comparison: ComparisonResult) -> Iterator[str]:
    """Names that are known, and the difference of the two means."""
    if comparison.measure not in collection.measures:
        yield f"measure: no measure {comparison.measure!r} in this collection"
        return
    for field in ("candidate", "baseline"):
        if getattr(comparison, field) not in collection.competitors:
            yield f"{field}: no system {getattr(comparison, field)!r} in this collection"
            return
    means = [
        collection.system(name).measures[comparison.measure].mean
        for name in (comparison.candidate, comparison.baseline)
    ]
    expected = None if None in means else means[0] - means[1]  # type: ignore[operator]
    if expected is not None and not abs(comparison.difference - expected) <= ROUNDING:
        yield (
            f"difference: {comparison.difference:g}, and the means differ by {expected:g} "
            f"(tolerance {ROUNDING:g})"
        )
    counts = (comparison.wins, comparison.ties, comparison.losses)
    if min(counts) < 0 or sum(counts) != len(collection.queries):
        total = pluralize(len(collection.queries), "query")
        yield f"wins, ties and losses: {counts}, and the collection has {total}"
    yield from check_range("p", (comparison.p,))
    yield from check_range("p_adjusted", (comparison.p_adjusted,))
    yield from _check_interval(comparison)


def _check_interval(comparison: ComparisonResult) -> Iterator[str]:
    low, high, middle = comparison.low, comparison.high, comparison.difference
    if low is not None and low > middle + ROUNDING:
        yield f"low: {low:g} lies above the difference {middle:g}"
    if high is not None and high < middle - ROUNDING:
        yield f"high: {high:g} lies below the difference {middle:g}"
    if is_bounded(comparison.measure):
        for field, value in {"low": low, "high": high}.items():
            if value is not None and abs(value) > 1 + ROUNDING:
                yield f"{field}: values from -1 to 1 are needed, given {value:g}"

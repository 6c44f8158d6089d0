"""The results on one collection as plain data for the views of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusion_bench.evaluation.details.records import CollectionDetails
from fusion_bench.evaluation.report_records.collection import Collection
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.report_records.results.comparison import ComparisonResult
from fusion_bench.evaluation.report_records.results.system import MeasureResult, SystemResult
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.html.details_data import details_data
from fusion_bench.report.html.inference_data import inference_data
from fusion_bench.report.html.picture_texts import picture_texts
from fusion_bench.report.html.value_table import encode_values
from fusion_bench.stats.answers import BETTER, WORSE
from fusion_bench.util.formatting import escape_control_chars
from fusion_bench.util.yaml_text import format_yaml


def collection_data(
    report: Report, collection: Collection, details: CollectionDetails | None = None
) -> dict[str, Any]:
    """The data of one collection; see :mod:`fusion_bench.report.html.evaluation_data`."""
    rows = (*collection.ranked_systems, *collection.reference_rows)
    fields = {"type": collection.types, **collection.slices}
    return {
        "name": escape_control_chars(collection.name),
        "measures": list(collection.measures),
        "measure_titles": [display_measure(name) for name in collection.measures],
        "primary": collection.primary_measure,
        "baseline": escape_control_chars(collection.baseline),
        "best": escape_control_chars(collection.best_system),
        "queries": [escape_control_chars(query) for query in collection.queries],
        "slices": {
            field: [None if value is None else escape_control_chars(value) for value in values]
            for field, values in fields.items()
            if len(set(values)) > 1
        },
        "systems": [_system_data(report, collection, row) for row in rows],
        "values": [
            encode_values([row.measures[name].values for row in rows])
            for name in collection.measures
        ],
        "help": picture_texts(report, collection),
        **({} if details is None else details_data(details)),
    }


def _system_data(report: Report, collection: Collection, row: SystemResult) -> dict[str, Any]:
    results = [row.measures[name] for name in collection.measures]
    comparison = collection.comparison(row.name, collection.primary_measure)
    config = "" if row.config is None else _config_text(row.config)
    return {
        "name": escape_control_chars(row.name),
        "kind": row.kind,
        "group": _verdict_group(row, comparison),
        "note": escape_control_chars(row.note),
        "config": config,
        "means": [result.mean for result in results],
        "low": [result.low for result in results],
        "high": [result.high for result in results],
        "unjudged": row.unjudged_share,
        "bounds": bounds_data(results),
        "difference": None if comparison is None else _difference_data(report, comparison),
    }


def bounds_data(results: Iterable[MeasureResult | None]) -> list[dict[str, Any] | None]:
    """The bounds of one system on each measure; None where nothing is known."""
    known = (None if result is None else result.bounds for result in results)
    return [None if each is None else each.model_dump(mode="json") for each in known]


def _config_text(config: dict[str, Any]) -> str:
    lines = format_yaml(config, width=80).rstrip("\n").split("\n")
    return "\n".join(map(escape_control_chars, lines))


def _verdict_group(row: SystemResult, comparison: ComparisonResult | None) -> str:
    """``better``, ``baseline``, ``open``, ``worse``, ``floor`` or ``ceiling``."""
    if row.kind != "system":
        return row.kind
    if comparison is None:
        return "baseline"
    if comparison.answer in BETTER:
        return "better"
    return "worse" if comparison.answer in WORSE else "open"


def _difference_data(report: Report, comparison: ComparisonResult) -> dict[str, Any]:
    return {
        "value": comparison.difference,
        "wins": comparison.wins,
        "ties": comparison.ties,
        "losses": comparison.losses,
        **inference_data(report, comparison),
    }

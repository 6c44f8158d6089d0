"""The data behind the views of an evaluation's page.

Plain data, as JSON has it; every number as it was computed, with all its digits::

    { "kind": "evaluation", "name": …, "alpha": …, "min_gain": …,
      "collections": [ {
        "name", "measures": [M names], "measure_titles": [M], "primary", "baseline", "best",
        "queries": [Q ids],
        "slices": {field: [Q values or null]},         # fields with two values or more
        "systems": [ { "name", "kind": "system|floor|ceiling",
            "group": "better|baseline|open|worse|floor|ceiling", "note", "config": YAML text,
            "means": [M], "low": [M], "high": [M], "unjudged": share of the top 10,
            "bounds": [M × null | {"depth", "judged", "low", "high"}],   # see CompletionBounds
            "difference": null | { "value", "low", "high", "p": text, "wins", "ties", "losses",
                "detectable", "answer", "verdict": text, "few_changes" } } ],   # by primary mean
        "values": [M × {"distinct": [values], "rows": [S × [Q indices, -1 = none]]}],
        "help": {picture: [paragraphs]},
        "texts", "details": see fusion_bench.report.html.details_data } ],
      "lint": [findings],                              # as report.json has them
      "change": null | what changed since the report before, see ReportChange }

Names, ids and texts have no control characters: these are shown as codes. A key may be absent; the
page then leaves out what it would show.
"""

from __future__ import annotations

from typing import Any

from fusion_bench.evaluation.details.records import ReportDetails
from fusion_bench.evaluation.report_changes.records import ReportChange
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.report.html.collection_data import collection_data
from fusion_bench.report.html.plain_text import escape_texts
from fusion_bench.util.formatting import escape_control_chars, format_number, pluralize


def evaluation_data(
    report: Report, details: ReportDetails | None = None, change: ReportChange | None = None
) -> dict[str, Any]:
    """The data of the page of an evaluation.

    Args:
        report: Its values.
        details: What stands behind them; None = not computed.
        change: What changed since the report before; None = there was none.
    """
    tables = [None] * len(report.collections) if details is None else details.collections
    return {
        "kind": "evaluation",
        "name": escape_control_chars(report.name),
        "alpha": report.alpha,
        "min_gain": report.min_gain,
        "collections": [
            collection_data(report, each, table)
            for each, table in zip(report.collections, tables, strict=True)
        ],
        "lint": [escape_texts(finding.model_dump(mode="json")) for finding in report.lint],
        "change": None if change is None else escape_texts(change.to_dict()),
    }


def evaluation_number(report: Report) -> str:
    """The outcome as one number: the gain of the best system, or how many collections have one."""
    improvements = [each.best_improvement for each in report.collections]
    if len(improvements) != 1:
        better = sum(item is not None for item in improvements)
        total = pluralize(len(improvements), "collection")
        return f"{better} of {total} improved" if better else f"none of {total} shown to improve"
    collection, item = report.collections[0], improvements[0]
    if item is None:
        mean = collection.system(collection.baseline).measures[collection.primary_measure].mean
        return f"{collection.primary_measure} {format_number(mean)}, no gain shown"
    return f"{item.measure} {format_number(item.difference, signed=True)}"

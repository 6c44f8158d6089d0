"""The records of ``benchmarks.studies.tuning`` as a table, and where both are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.collections import COLLECTIONS
from benchmarks.studies.study import PAGE, write_table
from benchmarks.table import Rows, format_rows, pivot, read_rows, write_csv
from fusion_bench.experiment.settings import SelectionRule

RESULTS = Path(__file__).parent / "tuning.json"
#: Selection rule → row.
FUSION_BENCH: Mapping[SelectionRule, str] = {
    "shrinkage": "fusion_bench tune",
    "best": "fusion_bench tune, best trial",
    "one_standard_error": "fusion_bench tune, one standard error",
}
DEFAULT = "default"
RANX_ITSELF = "ranx optimize_fusion"
#: Non-inferiority margin.
MARGIN = 0.01


def describe_interval(low: float, high: float) -> str:
    """Better, worse, not worse (non-inferior) or not shown, from the interval of the difference."""
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "not worse" if low > -MARGIN else "not shown"


def format_difference(record: Mapping[str, Any]) -> str:
    """fusion_bench − this tool with its interval; empty for fusion_bench itself."""
    if record["tool"] == FUSION_BENCH["shrinkage"]:
        return ""
    mean, low, high = (record[name] for name in ("difference", "low", "high"))
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}] {describe_interval(low, high)}"


def format_table(records: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown."""
    lines = [
        "| collection | tool | nDCG@10, held out | fusion_bench − this | splits | tried |",
        "|:--|:--|--:|:--|--:|--:|",
    ]
    for record in records:
        sizes = f"{record['tuning']:,} to tune on, {record['queries']:,} held out"
        title = f"{record['collection']}, {sizes}" if record["tool"] == DEFAULT else ""
        lines.append(
            f"| {title} | {record['tool']} | {record['held_out']:.4f} | "
            f"{format_difference(record)} | {record['splits']} | {record['tried']:,} |"
        )
    return "\n".join(lines)


def summarize_rivals(rows: Rows) -> list[list[str]]:
    """The difference to each tool, a column for each collection."""
    ours = list(FUSION_BENCH.values())
    others = [row for row in rows if row[1] not in ours]
    return pivot(others, ["tool"], "collection", "fusion_bench − this")


def write_records(records: Sequence[dict[str, Any]]) -> None:
    """Replace the earlier records of one collection."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    every = [each for each in old if each["collection"] != records[0]["collection"]]
    every += records
    every.sort(key=lambda each: list(COLLECTIONS).index(each["collection"]))
    RESULTS.write_text(f"{json.dumps(every, indent=1)}\n", encoding="utf-8")
    rows = read_rows(format_table(every), repeated=1)
    write_table(
        "rivals", f"{format_rows(summarize_rivals(rows))}\n\n{write_csv(PAGE, 'rivals', rows)}"
    )

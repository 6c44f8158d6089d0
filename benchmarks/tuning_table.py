"""The records of ``benchmarks.tuning`` as a table, and where both are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.collections import COLLECTIONS
from benchmarks.page import put
from fusion_bench.experiment.tune_settings import SelectionRule

__all__ = ["DEFAULT", "OURS", "RANX_ITSELF", "renew", "said", "table"]

RESULTS = Path(__file__).parent / "tuning.json"
#: Our rows by rule of choice.
OURS: Mapping[SelectionRule, str] = {
    "shrinkage": "fusion_bench tune",
    "best": "fusion_bench tune, best trial",
    "one_standard_error": "fusion_bench tune, one standard error",
}
DEFAULT = "default"
RANX_ITSELF = "ranx optimize_fusion"
#: A tuned system that loses no more than this is as good.
MARGIN = 0.01


def said(low: float, high: float) -> str:
    """What the interval of ours − theirs allows to be said."""
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    return "not worse" if low > -MARGIN else "not shown"


def gap_cell(record: Mapping[str, Any]) -> str:
    """Ours − this, its interval and what that means; nothing for ours itself."""
    if record["tool"] == OURS["shrinkage"]:
        return ""
    mean, low, high = (record[name] for name in ("ours_minus", "low", "high"))
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}] {said(low, high)}"


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown."""
    lines = [
        "| collection | tool | nDCG@10, held out | ours − this | splits | tried |",
        "|:--|:--|--:|:--|--:|--:|",
    ]
    for one in records:
        size = f"{one['collection']}, {one['tuning']:,} to tune on, {one['queries']:,} held out"
        lines.append(
            f"| {size if one['tool'] == DEFAULT else ''} | {one['tool']} | "
            f"{one['held_out']:.4f} | {gap_cell(one)} | {one['splits']} | {one['tried']:,} |"
        )
    return "\n".join(lines)


def renew(found: Sequence[dict[str, Any]]) -> None:
    """Put one collection's records in the place of its earlier ones."""
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    every = [one for one in old if one["collection"] != found[0]["collection"] and "wall" in one]
    every += found
    every.sort(key=lambda one: list(COLLECTIONS).index(one["collection"]))
    RESULTS.write_text(f"{json.dumps(every, indent=1)}\n", encoding="utf-8")
    put("rivals", table(every))

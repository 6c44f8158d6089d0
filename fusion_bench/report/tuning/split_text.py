"""Which queries decide, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.report.tuning_records.split_choice import SimulatedPower, SplitChoice
from fusion_bench.util.formatting import format_percent

#: By design, what ``held_out: auto`` did.
DESIGNS = {
    "all": "Every query is held out once, by cross-fitting",
    "share": "Half of the queries is held out",
}


def describe_split(choice: SplitChoice | None) -> str:
    """What ``held_out: auto`` chose, why, and its power; empty where it did not decide."""
    if choice is None or choice.asked != "auto" or choice.design == "dataset":
        return ""
    text = f"{DESIGNS[choice.design]} (held_out: auto, because {choice.reason})."
    return " ".join(filter(None, (text, _describe_power(choice.power))))


def _describe_power(rows: Sequence[SimulatedPower]) -> str:
    if not rows:
        return ""
    shares = " and ".join(
        f"{format_percent(row.cross_fitting)} of the samples of {row.collection} (half split: "
        f"{format_percent(row.half_split)})"
        for row in rows
    )
    return f"Simulated with {rows[0].queries} queries, cross-fitting ships a true gain in {shares}."

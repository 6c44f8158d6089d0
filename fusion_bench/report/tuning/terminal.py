"""A tuning run on a terminal, or through a pipe."""

from __future__ import annotations

from rich.console import Console

from fusion_bench.report.terminal import _say, print_table
from fusion_bench.report.tuning import tables
from fusion_bench.report.tuning.findings import sentences
from fusion_bench.report.tuning.tuning_records import TuningReport

__all__ = ["render"]


def render(tuning: TuningReport, console: Console) -> None:
    """Print the verdict, what it rests on, and the tables."""
    _say(console, f"{tuning.name}: tuning {tuning.system} on {tuning.dataset}", style="bold")
    facts = f"{tuning.measure}; {len(tuning.trials):,} settings tried; split: {tuning.split}"
    _say(console, facts, style="dim")
    for sentence in sentences(tuning):
        warns = sentence.kind == "warning"
        _say(console, f"{'!' if warns else '-'} {sentence.text}", style="yellow" if warns else "")
    for table in tables.all_tables(tuning):
        console.print()
        print_table(table, console)

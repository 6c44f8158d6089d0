"""A decision of the gate on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusion_bench.gate.report import (
    bound,
    check_row,
    headings,
    losses,
    sentence,
    wishes,
)
from fusion_bench.gate.self_test.page import HEADINGS, headline, rows
from fusion_bench.report.page import Column, Row, Table, Tone
from fusion_bench.report.terminal import print_table
from fusion_bench.util.formatting import escape_control_chars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.gate.self_test.error_rates import SelfTestResult

__all__ = ["render", "render_self_test"]

TONES: dict[str, Tone] = {"pass": "passed", "regressed": "failed", "inconclusive": "inconclusive"}
#: Columns that go where the width does not suffice; gate.md has them all.
OPTIONAL = {"before", "after", "lower bound", "p (Holm)", "changed", "false pass"}


def render(result: GateVerdict, console: Console) -> None:
    """Print the decision: the table, what did not pass in words, who lost, the headline last."""
    for path, (before, after) in result.config_changes.items():
        console.print(escape_control_chars(f"{path}: {before} → {after}"), markup=False)
    if result.checks:
        print_table(_table(result), console)
    for line in _lines(result):
        console.print(escape_control_chars(line), markup=False)


def _table(result: GateVerdict) -> Table:
    columns = [
        Column(heading, is_text=i < 2, is_optional=heading in OPTIONAL)
        for i, heading in enumerate(headings())
    ]
    rows = tuple(
        Row(tuple(map(escape_control_chars, check_row(check))), TONES[check.status])
        for check in result.checks
    )
    return Table(f"{result.system} against {result.baseline}", tuple(columns), rows)


def _lines(result: GateVerdict) -> Iterator[str]:
    for check in result.checks:
        if check.status != "pass":
            yield f"{check.name}: {sentence(check)}"
    yield from wishes(result)
    yield from (f"{row.collection}: {bound(row)}" for row in result.query_checks)
    for lost in result.regressions:
        change = f"{lost.measure} {lost.value_before:.4f} → {lost.value_after:.4f}"
        yield f"lost: {lost.collection}, query {lost.query}: {change}"
        yield from (f"    {line}" for line in losses(lost))
    yield result.headline


def render_self_test(found: SelfTestResult, systems: tuple[str, str], console: Console) -> None:
    """Print the promises and what became of them."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        title=Text(escape_control_chars(f"{systems[1]} against {systems[0]}")), title_justify="left"
    )
    for i, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if i < 2 else "right", overflow="fold")
    for finding, cells in zip(found.error_rates, rows(found), strict=True):
        table.add_row(
            *(Text(escape_control_chars(cell)) for cell in cells),
            style="" if finding.agrees else "bold red",
        )
    console.print(table)
    for name, reason in found.skipped.items():
        console.print(escape_control_chars(f"not tried: {name}: {reason}"), markup=False)
    console.print(headline(found), markup=False)

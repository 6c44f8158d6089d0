"""The tables of docs/studies/campaigns.md, and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.studies.campaigns.picture import draw_false_ships
from benchmarks.studies.campaigns.power import PLANS, DetectableRow, PowerRow
from benchmarks.studies.campaigns.proposers import ADVERSARY, PROPOSERS
from benchmarks.studies.campaigns.real_command import RealCampaign
from benchmarks.studies.campaigns.replay import LEVEL
from benchmarks.studies.campaigns.results import (
    RESULTS,
    CellResult,
    read_cells,
    read_power,
    read_real,
    read_tails,
)
from benchmarks.studies.campaigns.run import MADE
from benchmarks.studies.campaigns.tails import TailRow
from benchmarks.studies.simulations.promise import Promise
from benchmarks.table import format_rows, pivot, read_rows, replace_between_marks, write_csv

PAGE: Final = Path(__file__).parents[3] / "docs" / "studies" / "campaigns.md"
PICTURE: Final = PAGE.with_suffix(".png")
CAPTION: Final = "Share of null campaigns that shipped noise, by number of asks and rule"
#: Rules beside ours → their headings.
RULES: Final = {
    "campaign": "campaign",
    "tails t": "`--tails t`",
    "bonferroni": "t at level ÷ asks",
    "looks": "looks, level·2⁻ʲ",
    "unprotected": "each ask at .05",
}
#: Proposers whose worlds are not those of one another; the other searchers share the first's.
APART: Final = ("random", ADVERSARY)
#: The plan and the held-out queries that the tables hold fixed.
ONE_PHASE, QUERIES = PLANS[1], 833


def _promise(cells: Sequence[CellResult], rule: str) -> Promise:
    count = sum(len(cell.first[rule]) for cell in cells)
    runs = sum(cell.campaigns for cell in cells)
    return Promise("campaigns", "false ship", count, runs, LEVEL, "at most")


def _by_null(cells: Iterable[CellResult]) -> dict[tuple[str, str], list[CellResult]]:
    rows: dict[tuple[str, str], list[CellResult]] = {}
    for cell in sorted(cells, key=lambda cell: cell.data.startswith(MADE)):
        rows.setdefault((cell.data, cell.null), []).append(cell)
    return rows


def format_nulls(cells: Sequence[CellResult]) -> str:
    """Campaigns with a false ship, cell by cell, and pooled."""
    heads = " | ".join(PROPOSERS)
    lines = [
        f"| data | null | {heads} | campaigns a cell | every cell holds |",
        f"|:--|:--|{'--:|' * len(PROPOSERS)}--:|:--|",
    ]
    for (data, null), row in _by_null(cells).items():
        by_proposer = {cell.proposer: _promise([cell], "campaign") for cell in row}
        counts = [
            f"{by_proposer[each].count}" if each in by_proposer else "–" for each in PROPOSERS
        ]
        holds = "yes" if all(each.holds for each in by_proposer.values()) else "**no**"
        lines.append(f"| {data} | {null} | {' | '.join(counts)} | {row[0].campaigns} | {holds} |")
    every = _promise(cells, "campaign")
    apart = _promise([cell for cell in cells if cell.proposer in APART], "campaign")
    low, high = apart.interval
    lines += [
        "",
        f"All: {every.count} of {every.runs:,} campaigns shipped noise. Of those in worlds of "
        f"their own ({' and '.join(APART)}): {apart.count} of {apart.runs:,}, "
        f"{100 * apart.share:.2f} % [{100 * low:.2f}, {100 * high:.2f}].",
    ]
    return "\n".join(lines)


def format_rules(cells: Sequence[CellResult]) -> str:
    """Per cent of campaigns with a false ship by rule, over all proposers."""
    lines = [
        f"| data | null | {' | '.join(RULES.values())} |",
        f"|:--|:--|{'--:|' * len(RULES)}",
    ]
    for (data, null), row in _by_null(cells).items():
        shares = [f"{100 * _promise(row, rule).share:.1f}" for rule in RULES]
        lines.append(f"| {data} | {null} | {' | '.join(shares)} |")
    return "\n".join(lines)


def _gain(row: PowerRow) -> str:
    low, high = row.gain
    return f"{low:.3f} to {high:.3f}"


def format_power(rows: Sequence[PowerRow]) -> str:
    """By queries and gain at a thousand asks and one phase, with the rules beside."""
    lines = [
        f"| data | queries | true gain | {' | '.join(RULES.values())} | one of 20 ships |",
        f"|:--|--:|:--|{'--:|' * len(RULES)}--:|",
    ]
    for row in rows:
        if (row.phase, row.ships, row.asks) != ONE_PHASE:
            continue
        shares = " | ".join(f"{100 * row.single[rule]:.0f}" for rule in RULES)
        cells = f"{row.data}, {row.measure} | {row.queries:,} | {_gain(row)} | {shares}"
        lines.append(f"| {cells} | {100 * row.any_of:.0f} |")
    return "\n".join(lines)


def summarize_power(rows: Sequence[PowerRow]) -> str:
    """Per cent of campaigns in which a candidate ships, a column for each number of queries."""
    table = pivot(read_rows(format_power(rows)), ["data", "true gain"], "queries", "campaign")
    return format_rows(table, text_columns=2)


def format_plans(rows: Sequence[PowerRow]) -> str:
    """By plan at 833 held-out queries: ours, and Student's t."""
    heads = [f"{asks:,} asks, phase {phase} of {ships}" for phase, ships, asks in PLANS]
    lines = [f"| data | true gain | {' | '.join(heads)} |", f"|:--|:--|{'--:|' * len(PLANS)}"]
    table: dict[tuple[str, str], dict[tuple[int, int, int], str]] = {}
    for row in rows:
        if row.queries == QUERIES:
            shares = (row.single[rule] for rule in ("campaign", "tails t"))
            text = " / ".join(f"{100 * share:.0f}" for share in shares)
            key = f"{row.data}, {row.measure}", _gain(row)
            table.setdefault(key, {})[row.phase, row.ships, row.asks] = text
    for (data, gain), cells in table.items():
        lines.append(f"| {data} | {gain} | {' | '.join(cells[plan] for plan in PLANS)} |")
    return "\n".join(lines)


def format_detectable(rows: Sequence[DetectableRow]) -> str:
    """Whether the printed gain is found as often as it says."""
    lines = [
        "| data | queries | asks | printed | ships where shifted to it, % "
        "| real settings with that gain | of these ship, % | from the sd alone |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        found = f"{100 * row.found:.0f}" if row.candidates else "–"
        cells = (
            f"{row.data}, {row.measure}",
            f"{row.queries:,}",
            f"{row.asks:,}",
            f"{row.printed:.4f}",
            f"{100 * row.shifted:.0f}",
            f"{row.candidates}",
            found,
            f"{row.by_spread:.4f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_tails(rows: Sequence[TailRow]) -> str:
    """How many times its share one ask ships."""
    lines = [
        "| differences | queries | Student's t, times its share | e-value, times its share |",
        "|:--|--:|--:|--:|",
    ]
    for row in rows:
        betting = "below .0001" if row.betting < 1e-4 else f"{row.betting:.2g}"
        lines.append(f"| {row.skew} | {row.queries:,} | {row.student:,.0f} | {betting} |")
    return "\n".join(lines)


def format_real(campaigns: Sequence[RealCampaign]) -> str:
    """The command beside its replay."""
    lines = [
        "| data | proposer | ships declared | campaigns | held-out queries | asks | ships "
        "| as the replay |",
        "|:--|:--|--:|--:|--:|--:|--:|:--|",
    ]
    rows: dict[tuple[str, str, int], list[RealCampaign]] = {}
    for each in campaigns:
        data = f"{each.data}, grades permuted" if each.is_null else each.data
        rows.setdefault((data, each.proposer, each.declared), []).append(each)
    for (data, proposer, declared), row in sorted(rows.items()):
        cells = (
            data,
            proposer,
            f"{declared}",
            f"{len(row)}",
            f"{row[0].held_out}",
            f"{sum(each.asked for each in row)}",
            f"{sum(len(each.ships) for each in row)}",
            f"{sum(each.agrees for each in row)} of {len(row)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def list_panels(
    cells: Sequence[CellResult],
) -> dict[str, tuple[int, Mapping[str, Sequence[int]]]]:
    """Real collections, and made worlds with rare losses."""
    panels: dict[str, tuple[int, Mapping[str, Sequence[int]]]] = {}
    for title, is_made in (("real lists, no setting better", False), ("made, rare losses", True)):
        kept = [cell for cell in cells if cell.data.startswith(MADE) == is_made]
        first = {rule: [ask for cell in kept for ask in cell.first[rule]] for rule in RULES}
        panels[title] = sum(cell.campaigns for cell in kept), first
    return panels


def format_tables(folder: Path = RESULTS) -> dict[str, str]:
    """Mark → table, of what is stored."""
    cells, power = read_cells(folder), read_power(folder)
    return {
        "nulls": format_nulls(cells).split("\n\n")[1],
        "rules": format_rules(cells),
        "tails": format_tails(read_tails(folder)),
        "power": summarize_power(power.rows),
        "plans": format_plans(power.rows),
        "detectable": format_detectable(power.detectable),
        "real": format_real(read_real(folder)),
    }


def write_page(folder: Path = RESULTS, page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Renew the tables of the page, and the picture."""
    for mark, table in format_tables(folder).items():
        text = table
        if mark == "power":
            text += f"\n\n{write_csv(page, mark, read_rows(format_power(read_power(folder).rows)))}"
        if mark == "nulls":
            text += f" {write_csv(page, mark, read_rows(format_nulls(read_cells(folder))))}"
        replace_between_marks(page, f"\n{text}\n\n", mark)
    replace_between_marks(page, f"\n![{CAPTION}]({picture.name})\n\n", "picture")
    cells = read_cells(folder)
    drawing = draw_false_ships(list_panels(cells), cells[0].asks, LEVEL)
    drawing.savefig(picture, dpi=110)

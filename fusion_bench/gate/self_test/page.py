"""A self-test as a page and as files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.gate.self_test.error_rates import ErrorRate, SelfTestResult
from fusion_bench.gate.self_test.made_projects import CaseOutcome
from fusion_bench.gate.self_test.simulation import TrialAlarms
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Column, Figure, Finding, Page, Row, Section, Table
from fusion_bench.report.write import draw_figures, write_files
from fusion_bench.util.formatting import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

COLUMNS: tuple[Column[object], ...] = (
    Column("error rate", is_text=True),
    Column("check", is_text=True, is_name=True),
    Column("true drop"),
    Column("count", is_optional=True),
    Column("rate"),
    Column("interval", is_optional=True),
    Column("stated"),
    Column("agrees", is_text=True),
)
NOTES = (
    "Intervals: Clopper–Pearson, 95 % for all rows together.",
    "False alarm: any check fell in an A/A run, in which the labels of the two systems are "
    "swapped with probability ½, by group where there are groups. Single test: the randomization "
    "test of one check rejects in an A/A run, without Holm's correction and tolerance. Power and "
    "false pass: groups are drawn with replacement and the mean is moved to the true drop. Stated: "
    "the gate's level, or the number that the gate prints.",
)


HALVES: tuple[Column[object], ...] = (
    Column("check", is_text=True, is_name=True),
    Column("chance", is_text=True),
    Column("printed"),
    Column("measured"),
    Column("error", is_optional=True),
    Column("agrees", is_text=True),
)
HALF_NOTES = (
    "Printed: the mean of what the gate prints for one half of the queries, over 100 halvings. "
    "Measured: the share of the gate's decisions on samples from the other half. They agree "
    "within three standard errors.",
)
CASES: tuple[Column[object], ...] = (
    Column("case", is_text=True, is_name=True),
    Column("statuses", is_text=True),
    Column("exit code"),
    Column("right", is_text=True),
)
CASE_NOTES = (
    "The command as a whole, from files to exit code, on made lists and on damaged copies of the "
    "gated system's lists. The right answer comes from the construction, or from a second, slow "
    "form of the rule.",
)


TRIALS: tuple[Column[object], ...] = (
    Column("check", is_text=True, is_name=True),
    Column("on each side", is_text=True),
    Column("alarms", is_optional=True),
    Column("rate"),
    Column("interval", is_optional=True),
    Column("stated"),
    Column("agrees", is_text=True),
)
TRIAL_NOTES = (
    "Both sides are trials of the gated system, so every alarm is a false one. New trials: groups "
    "are drawn with replacement, and each trial takes the answers to a group from one of the "
    "observed trials. Then a normal number moves each trial on all queries; its variance is the "
    "estimated effect of trials (Owen 2007). Each check counts by itself.",
    "Nothing is promised of one trial on each side where trials have an effect of their own: the "
    "gate cannot see it. Nor is it of observed trials, as their pairs share trials.",
    "Intervals: Clopper–Pearson, 95 % for all rows together.",
)


def build_self_test_page(result: SelfTestResult, title: str) -> Page:
    """The page of a self-test; the terminal and Markdown render it."""
    reference, candidate = result.systems
    parts: list[Table | Figure] = [
        Table("Error rates", COLUMNS, tuple(map(_build_row, result.error_rates)), NOTES)
    ]
    if result.halves:
        parts.append(
            Table("Printed chances on other queries", HALVES, _half_rows(result), HALF_NOTES)
        )
    if result.cases:
        parts.append(Table("Whole command", CASES, tuple(map(_case_row, result.cases)), CASE_NOTES))
    if result.trial_alarms:
        rows = tuple(map(_trial_row, result.trial_alarms))
        notes = (*TRIAL_NOTES, _describe_means(result.list_trials))
        parts.append(Table("Trials of one system", TRIALS, rows, notes))
    if result.power_curves:
        caption = "Curves: as the gate states it. Points: as measured."
        draw = partial(draw_power_curves, result)
        parts.append(Figure("self-test.png", "Power by true drop", caption, draw))
    skipped = (
        Finding(f"{name}: not tested: {reason}", key="skipped")
        for name, reason in result.skipped.items()
    )
    section = Section(
        text=f"Differences of {candidate} and {reference}.",
        findings=tuple(skipped),
        parts=tuple(parts),
    )
    headline = Finding(result.headline, "passed" if result.agrees else "failed")
    return Page(title, (section,), headline)


def _build_row(rate: ErrorRate) -> Row:
    stated = f"{100 * rate.stated:.1f} %"
    cells = (
        rate.kind,
        rate.check or "all checks",
        "none" if rate.drop is None else format_number(rate.drop),
        f"{rate.count} of {rate.runs}",
        f"{100 * rate.rate:.2f} %",
        f"[{100 * rate.low:.2f}, {100 * rate.high:.2f}] %",
        f"at most {stated}" if rate.is_upper_bound else stated,
        "yes" if rate.agrees else "NO",
    )
    return Row(cells, "plain" if rate.agrees else "failed")


def _half_rows(result: SelfTestResult) -> tuple[Row, ...]:
    return tuple(
        Row(
            (
                half.check,
                half.quantity,
                f"{100 * half.printed:.1f} %",
                f"{100 * half.measured:.1f} %",
                f"{100 * half.standard_error:.1f} %",
                "yes" if half.agrees else "NO",
            ),
            "plain" if half.agrees else "failed",
        )
        for half in result.halves
    )


def _case_row(case: CaseOutcome) -> Row:
    right = "NO: " + "; ".join(case.faults) if case.faults else "yes"
    statuses = ", ".join(case.statuses) or "none"
    cells = (case.name, statuses, str(case.exit_code), right)
    return Row(cells, "failed" if case.faults else "plain")


def _trial_row(row: TrialAlarms) -> Row:
    kind = {
        "new trials": f"{row.trials} new trials",
        "one new trial": "1 new trial",
        "observed pairs": "1 observed trial",
    }
    cells = (
        row.check,
        kind[row.design],
        f"{row.count} of {row.runs}",
        f"{100 * row.rate:.2f} %",
        f"[{100 * row.low:.2f}, {100 * row.high:.2f}] %",
        "nothing" if row.limit is None else f"at most {100 * row.limit:.1f} %",
        "yes" if row.agrees else "NO",
    )
    return Row(cells, "plain" if row.agrees else "failed")


def _describe_means(trials: int) -> str:
    return (
        f"All other tables take the means over {trials} trials as the values of one trial. The "
        "lists that are damaged are those of trial 1."
    )


def draw_power_curves(result: SelfTestResult) -> Drawing:
    """The power curves with the measured power; imports Matplotlib."""
    from fusion_bench.report.plots.studies import draw_power

    return draw_power(result.model_dump())


def write_self_test(result: SelfTestResult, page: Page, folder: Path) -> list[Path]:
    """Write ``self-test.json``, ``self-test.md`` and the figure; the files written.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    texts = {"self-test.json": f"{result.model_dump_json()}\n", "self-test.md": render_page(page)}
    return write_files(folder, texts, draw_figures(page))

"""A self-test as a page and as files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fusion_bench.gate.self_test.error_rates import ErrorRate, SelfTestResult
from fusion_bench.gate.self_test.simulation import HalvesOutcome, RepeatAlarms
from fusion_bench.gate.self_test.whole_command import CaseOutcome
from fusion_bench.io.outputs import write_files
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Column, Figure, Finding, Page, Section, Table, Tone, make_table
from fusion_bench.report.write import draw_figures
from fusion_bench.util.formatting import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


def _format_agreement(row: ErrorRate | HalvesOutcome | RepeatAlarms) -> str:
    return "yes" if row.agrees else "NO"


def _agreement_tone(row: ErrorRate | HalvesOutcome | RepeatAlarms) -> Tone:
    return "plain" if row.agrees else "failed"


def _format_counted_rate(row: ErrorRate | RepeatAlarms) -> str:
    return f"{100 * row.rate:.2f} %"


def _format_rate_interval(row: ErrorRate | RepeatAlarms) -> str:
    return f"[{100 * row.low:.2f}, {100 * row.high:.2f}] %"


COLUMNS: tuple[Column[ErrorRate], ...] = (
    Column("error rate", lambda rate: rate.kind, is_text=True),
    Column("check", lambda rate: rate.check or "all checks", is_text=True, is_name=True),
    Column("true drop", lambda r: "none" if r.drop is None else format_number(r.drop)),
    Column("count", lambda rate: f"{rate.count} of {rate.runs}", is_optional=True),
    Column("rate", _format_counted_rate),
    Column("interval", _format_rate_interval, is_optional=True),
    Column("stated", lambda r: f"{'at most ' * r.is_upper_bound}{100 * r.stated:.1f} %"),
    Column("agrees", _format_agreement, is_text=True),
)
NOTES = (
    "Intervals: Clopper–Pearson, 95 % for all rows together.",
    "False alarm: any check fell in an A/A run, in which the labels of the two systems are "
    "swapped with probability ½, by group where there are groups. Single test: the randomization "
    "test of one check rejects in an A/A run, without Holm's correction and tolerance. Power and "
    "false pass: groups are drawn with replacement and the mean is moved to the true drop. Stated: "
    "the gate's level, or the number that the gate prints.",
)


HALVES: tuple[Column[HalvesOutcome], ...] = (
    Column("check", lambda half: half.check, is_text=True, is_name=True),
    Column("chance", lambda half: half.quantity, is_text=True),
    Column("printed", lambda half: f"{100 * half.printed:.1f} %"),
    Column("measured", lambda half: f"{100 * half.measured:.1f} %"),
    Column("error", lambda half: f"{100 * half.standard_error:.1f} %", is_optional=True),
    Column("agrees", _format_agreement, is_text=True),
)
HALF_NOTES = (
    "Printed: the mean of what the gate prints for one half of the queries, over 100 halvings. "
    "Measured: the share of the gate's decisions on samples from the other half. They agree "
    "within three standard errors.",
)


CASES: tuple[Column[CaseOutcome], ...] = (
    Column("case", lambda case: case.name, is_text=True, is_name=True),
    Column("statuses", lambda case: ", ".join(case.statuses) or "none", is_text=True),
    Column("exit code", lambda case: str(case.exit_code)),
    Column("right", lambda c: f"NO: {'; '.join(c.faults)}" if c.faults else "yes", is_text=True),
)
CASE_NOTES = (
    "The command as a whole, from files to exit code, on damaged copies of the gated system's "
    "lists. The right answer comes from the construction.",
)


def _describe_design(row: RepeatAlarms) -> str:
    kind = {
        "new trials": f"{row.trials} new trials",
        "one new trial": "1 new trial",
        "observed pairs": "1 observed trial",
    }
    return kind[row.design]


def _format_limit(row: RepeatAlarms) -> str:
    return "nothing" if row.limit is None else f"at most {100 * row.limit:.1f} %"


REPEATS: tuple[Column[RepeatAlarms], ...] = (
    Column("check", lambda row: row.check, is_text=True, is_name=True),
    Column("on each side", _describe_design, is_text=True),
    Column("alarms", lambda row: f"{row.count} of {row.runs}", is_optional=True),
    Column("rate", _format_counted_rate),
    Column("interval", _format_rate_interval, is_optional=True),
    Column("stated", _format_limit),
    Column("agrees", _format_agreement, is_text=True),
)
REPEAT_NOTES = (
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
    tone = _agreement_tone
    parts: list[Table | Figure] = [
        make_table("Error rates", COLUMNS, result.error_rates, notes=NOTES, tone=tone)
    ]
    if result.halves:
        heading = "Printed chances on other queries"
        parts.append(make_table(heading, HALVES, result.halves, notes=HALF_NOTES, tone=tone))
    if result.cases:
        cases = make_table(
            *("Whole command", CASES, result.cases),
            notes=CASE_NOTES,
            tone=lambda case: "failed" if case.faults else "plain",
        )
        parts.append(cases)
    if result.trial_alarms:
        notes = (*REPEAT_NOTES, _describe_means(result.list_trials))
        alarms = result.trial_alarms
        parts.append(make_table("Trials of one system", REPEATS, alarms, notes=notes, tone=tone))
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


def _describe_means(repeats: int) -> str:
    return (
        f"All other tables take the means over {repeats} trials as the values of one trial. The "
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

"""A self-test as a page and as files."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.gate.self_test.known_answers import MOST_GROUPS, PassRate, SelfTestResult
from fusion_bench.gate.self_test.whole_command import CaseOutcome
from fusion_bench.io.outputs import write_files
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Column, Finding, Page, Section, make_table

RATES: tuple[Column[PassRate], ...] = (
    Column("check", lambda rate: rate.check, is_text=True, is_name=True),
    Column("true drop", lambda rate: f"{rate.max_drop:g}"),
    Column("passed", lambda rate: f"{rate.count} of {rate.runs}", is_optional=True),
    Column("rate", lambda rate: f"{100 * rate.rate:.2f} %"),
    Column("interval", lambda r: f"[{100 * r.low:.2f}, {100 * r.high:.2f}] %", is_optional=True),
    Column("at most 5 %", lambda rate: "yes" if rate.agrees else "NO", is_text=True),
)
RATE_NOTES = (
    f"Groups of queries are drawn with replacement, at most {MOST_GROUPS} in each run, and the "
    "mean is moved to a true drop of exactly max_drop. Intervals: Clopper–Pearson, 90 % for all "
    "rows together.",
)
CASES: tuple[Column[CaseOutcome], ...] = (
    Column("case", lambda case: case.name, is_text=True, is_name=True),
    Column("statuses", lambda case: ", ".join(case.statuses) or "none", is_text=True),
    Column("exit code", lambda case: str(case.exit_code)),
    Column("right", lambda c: f"NO: {'; '.join(c.faults)}" if c.faults else "yes", is_text=True),
)
CASE_NOTES = (
    "Planted drops are decided as the gate decides checks. The other cases run the whole command "
    "on damaged copies of the gated system's lists. The right answer comes from the construction.",
)


def build_self_test_page(result: SelfTestResult, title: str) -> Page:
    """The page of a self-test; the terminal and Markdown render it."""
    reference, candidate = result.systems
    rates = make_table(
        *("Pass at max_drop", RATES, result.rates),
        notes=RATE_NOTES,
        tone=lambda rate: "plain" if rate.agrees else "failed",
    )
    cases = make_table(
        *("Known answers", CASES, result.cases),
        notes=CASE_NOTES,
        tone=lambda case: "failed" if case.faults else "plain",
    )
    section = Section(
        text=f"Differences of {candidate} and {reference}.",
        findings=tuple(
            Finding(f"{name}: not tested: {reason}", key="skipped")
            for name, reason in result.skipped.items()
        ),
        parts=(rates, cases),
    )
    headline = Finding(result.headline, "passed" if result.agrees else "failed")
    return Page(title, (section,), headline)


def write_self_test(result: SelfTestResult, page: Page, folder: Path) -> list[Path]:
    """Write ``self-test.json`` and ``self-test.md``; returns the files.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    texts = {"self-test.json": f"{result.model_dump_json()}\n", "self-test.md": render_page(page)}
    return write_files(folder, texts)

"""One whole page of each kind, and the findings of many cases, compared with stored ones.

``pytest tests/report --renew-golden`` writes the stored pages anew: read their difference.
"""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure as DrawnFigure
from rich.console import Console

from fusion_bench.report import evaluation_page as evaluation
from fusion_bench.report import tuning_page as tuning
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Figure, Finding, Page
from fusion_bench.report.terminal import print_page
from fusion_bench.report.write import place_figures
from tests.report import cases, tuning_cases
from tests.report.evaluation_finding_cases import FINDINGS
from tests.report.finding_cases import describe_cases
from tests.report.tuning_finding_cases import CASES

FOLDER = Path(__file__).parent / "golden"
FIGURE = Figure("figure.png", "A figure", "What it shows.", DrawnFigure)


def evaluation_page() -> Page:
    collection = cases.full(split="test", types=("local", "global", "local"))
    settings = {"description": "Every kind of row."}
    report = cases.report(collection, v2=False, settings=settings)
    return place_figures(evaluation.build_page(report), [[FIGURE]])


def tuning_page() -> Page:
    report = tuning_cases.record(
        front=tuning_cases.front(),
        thresholds=(tuning_cases.thresholds(),),
        per_type=tuning_cases.by_type_too(),
        by_type=tuning_cases.typed(),
    )
    return tuning.build_page(report, [FIGURE])


def tuning_findings() -> str:
    reports = {name: tuning_cases.record(**changed) for name, changed in CASES.items()}
    cases = {
        name: (
            *tuning.tuning_findings(report),
            *(Finding(text, key="advice") for text in tuning.build_page(report).advice),
        )
        for name, report in reports.items()
    }
    return describe_cases(cases, cases["usual"])


def terminal_text(page: Page) -> str:
    file = io.StringIO()
    print_page(page, Console(file=file, width=110, force_terminal=True, color_system=None))
    return file.getvalue()


PAGES: dict[str, Callable[[], str]] = {
    "evaluation.md": lambda: render_page(evaluation_page()),
    "evaluation.txt": lambda: terminal_text(evaluation_page()),
    "tuning.md": lambda: render_page(tuning_page()),
    "evaluation-findings.txt": lambda: describe_cases(FINDINGS),
    "tuning-findings.txt": tuning_findings,
}


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, compare_golden: Callable[[Path, str], None]) -> None:
    compare_golden(FOLDER / name, PAGES[name]())

"""One whole page of each kind, compared with a stored one.

``python -m tests.report.test_golden`` renews the stored pages: look at the difference.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure as DrawnFigure
from rich.console import Console

from fusion_bench.report import evaluation_page as evaluation
from fusion_bench.report import tuning_page as tuning
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Figure, Page
from fusion_bench.report.terminal import print_page
from tests.report import cases
from tests.report.tuning import cases as tuning_cases

FOLDER = Path(__file__).parent / "golden"
FIGURE = Figure("figure.png", "A figure", "What it shows.", DrawnFigure)


def evaluation_page() -> Page:
    collection = cases.full(split="test", types=("local", "global", "local"))
    settings = {"description": "Every kind of row."}
    report = cases.report(collection, v2=False, settings=settings)
    return evaluation.build_page(report, [[FIGURE]])


def tuning_page() -> Page:
    report = tuning_cases.record(
        front=tuning_cases.front(),
        thresholds=(tuning_cases.thresholds(),),
        per_type=tuning_cases.by_type_too(),
        by_type=tuning_cases.typed(),
    )
    return tuning.build_page(report, [FIGURE])


def terminal_text(page: Page) -> str:
    file = io.StringIO()
    print_page(page, Console(file=file, width=110, force_terminal=True, color_system=None))
    return file.getvalue()


PAGES: dict[str, Callable[[], str]] = {
    "evaluation.md": lambda: render_page(evaluation_page()),
    "evaluation.txt": lambda: terminal_text(evaluation_page()),
    "tuning.md": lambda: render_page(tuning_page()),
}


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str) -> None:
    assert PAGES[name]() == (FOLDER / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for file_name, render in PAGES.items():
        (FOLDER / file_name).write_text(render(), encoding="utf-8")

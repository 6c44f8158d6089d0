"""The report page: time to write it, its size, and time until a browser shows it.

A browser is asked where there is one: Debian's ``chromium`` and the extra ``browser``, as for
``make test-browser``. First paint is the browser's own mark; the views are there once the page says
so. Both count from the moment that the address is opened.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cases import SIZES, Size, make_case
from benchmarks.timing import Row
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.report_details import ReportDetails
from fusion_bench.evaluation.in_memory import make_dataset, make_experiment
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment, run_on_datasets
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.html.pages import evaluation_html
from fusion_bench.util.formatting import ignore_progress

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TITLE = "Report page"
DEFAULT = Path(__file__).parent.parent / "experiments/default.yaml"
LARGE = Size("10,000 × 4 × 20", 10_000, 4, 20, 1.1, 100)
SYSTEMS, TOY_SYSTEMS = 20, 3
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
READY = "html[data-ready=true]"
#: Nobody waits longer for a page.
LIMIT_MS = 120_000


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """One line a page; medians."""
    if toy:
        return [_measure("toy", *make_page(SIZES["toy"], TOY_SYSTEMS), rounds, None)]
    with find_browser() as browser:
        return [
            _measure("experiments/default.yaml", *_default_page(), rounds, browser),
            _measure("made", *make_page(LARGE, SYSTEMS), rounds, browser),
        ]


def make_page(size: Size, systems: int) -> tuple[Report, ReportDetails]:
    """The report of a made collection, on which RRF runs with different k."""
    case = make_case(size)
    dataset = make_dataset("made", case.qrels, {run.name: run for run in case.runs})
    names = [run.name for run in case.runs]
    described = {
        f"k {k}": {"runs": names, "fusion": {"method": "rrf", "k": k}}
        for k in range(1, 5 * systems, 5)
    }
    experiment, source = make_experiment("made", described, dataset=dataset.name)
    collector = DetailsCollector()
    report = run_on_datasets(experiment, source, [dataset], ignore_progress, collector)
    return report, collector.make_details(report)


def _default_page() -> tuple[Report, ReportDetails]:
    experiment, source = read_experiment(DEFAULT)
    collector = DetailsCollector()
    folders = [DEFAULT.parent.parent / "datasets"]
    report = run_experiment(experiment, source, folders=folders, details=collector)
    return report, collector.make_details(report)


def _measure(
    name: str, report: Report, details: ReportDetails, rounds: int, browser: Browser | None
) -> Row:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        text = evaluation_html(report, details)
        times.append(time.perf_counter() - started)
    [collection] = report.collections
    count = f"{len(collection.queries):,} queries × {len(collection.ranked_systems)} systems"
    row: Row = {
        "page": f"{name}, {count}",
        "written ms": 1000 * statistics.median(times),
        "megabytes": len(text.encode()) / 1e6,
    }
    return row | ({} if browser is None else _open_page(browser, text, rounds))


def _open_page(browser: Browser, text: str, rounds: int) -> Row:
    """Medians of the time to first paint, and until every view is there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        path.write_text(text, encoding="utf-8")
        times = [measure_opening(browser, path.as_uri()) for _ in range(rounds)]
    paints, views = zip(*times, strict=True)
    return {"first paint ms": statistics.median(paints), "views ms": statistics.median(views)}


def measure_opening(browser: Browser, url: str) -> tuple[float, float]:
    """Milliseconds to first paint, and until every view is there."""
    page = browser.new_page()
    page.goto(url, timeout=LIMIT_MS)
    page.wait_for_selector(READY, state="attached", timeout=LIMIT_MS)
    ready: float = page.evaluate("performance.now()")
    # The views may be there before the first frame is.
    page.wait_for_function(f"({FIRST_PAINT}) > 0", timeout=LIMIT_MS)
    paint: float = page.evaluate(FIRST_PAINT)
    page.close()
    return paint, ready


@contextmanager
def find_browser() -> Iterator[Browser | None]:
    """A headless chromium; None where there is none, or no Playwright."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()

"""What a page says of systems of several trials."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.evaluation_findings import repeat_findings
from fusion_bench.report.evaluation_page import build_page, repeat_tables
from fusion_bench.report.page import Table
from tests.report.finding_cases import describe_cases
from tests.report.test_golden import FOLDER
from tests.tiny import EXPERIMENT
from tests.trials_project import FIRST, TRIALS, make


def run(root: Path, *texts: str) -> Report:
    make(root, *texts)
    experiment, source = read_experiment(root / EXPERIMENT)
    return run_experiment(experiment, source, folders=[root / "datasets"])


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run(tmp_path_factory.mktemp("trials"), *TRIALS)


def cells(table: Table, header: str) -> dict[str, str]:
    place = [column.header for column in table.columns].index(header)
    return {row.cells[0]: row.cells[place] for row in table.rows}


def test_findings(
    report: Report, tmp_path: Path, compare_golden: Callable[[Path, str], None]
) -> None:
    cases = {"3 trials": report, "4 trials": run(tmp_path, *TRIALS, FIRST)}
    findings = {name: repeat_findings(each.collections[0]) for name, each in cases.items()}
    compare_golden(FOLDER / "trial-findings.txt", describe_cases(findings))


def test_the_primary_table_counts_trials(report: Report) -> None:
    page = build_page(report)
    tables = {table.title: table for section in page.sections for table in section.tables}
    primary = next(table for title, table in tables.items() if title.startswith("Primary"))
    counts = cells(primary, "trials")
    assert (counts["a"], counts["both"], counts["b"]) == ("3×", "3×", "")
    assert "Repeated trials" in tables


def test_tables_have_the_numbers_of_the_records(report: Report) -> None:
    [spread] = repeat_tables(report.collections[0])
    assert cells(spread, "lowest")["a"] == "0.5000"
    assert cells(spread, "highest")["a"] == "0.7500"
    assert cells(spread, "sd of means")["a"] == "0.1250"
    assert cells(spread, "disagree (any)")["a"] == "2"


def test_warnings_name_the_trial_of_a_list(report: Report) -> None:
    page = build_page(report)
    texts = [finding.text for section in page.sections for finding in section.findings]
    assert any(text.startswith("a (trial 3) ") for text in texts)
    lists = [(info.name, info.trial) for info in report.collections[0].runs]
    assert lists == [("a", 1), ("b", None), ("a", 2), ("a", 3)]

"""Every table of every command at 80, 100, 120 and 200 columns: no name and no number breaks."""

import io
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from fusion_bench.checks.dataset_facts import describe_dataset
from fusion_bench.cli.dataset import build_dataset_table, build_list_tables
from fusion_bench.cli.methods import build_connector_table, build_method_table
from fusion_bench.engines.connectors._base import list_connectors
from fusion_bench.evaluation.compared_reports import compare_reports
from fusion_bench.evaluation.diagnosis import diagnose_experiment
from fusion_bench.evaluation.explanation import explain_query
from fusion_bench.evaluation.failures import KINDS
from fusion_bench.evaluation.in_memory import compare_files
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.evaluation.starter import RerankFile, StarterInput, compare_starter_systems
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.method_table import list_methods
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.formats import build_update_page
from fusion_bench.gate.page import build_gate_page
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.self_test import (
    SelfTestResult,
    build_self_test_page,
    measure_pass_rates,
    split_checks,
)
from fusion_bench.gate.self_test_command import CaseOutcome
from fusion_bench.gate.update import update_baseline
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.report.comparison_page import build_comparison_page
from fusion_bench.report.diagnosis_page import build_diagnosis_page
from fusion_bench.report.evaluation_page import build_page, build_starter_page
from fusion_bench.report.explanation_page import build_explanation_page, select_traces
from fusion_bench.report.page import Page, Row, Table, make_record_table
from fusion_bench.report.terminal import DROPPED_COLUMNS, MAX_NAME, name_columns, print_table
from fusion_bench.report.tuning_page import build_page as build_tuning_page
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.run import run_tuning
from fusion_bench.util.formatting import Progress, ignore_progress
from tests.gate import cases
from tests.gate.self_test.test_known_answers import make_checks as self_test_checks
from tests.tiny import edit

WIDTHS = (80, 100, 120, 200)
#: Of exactly thirty characters, and of more.
THIRTY, LONGER = (
    "a system of thirty characters!",
    "a name that is longer than thirty characters",
)
EXPERIMENT = f"""\
dataset: mine
measures: [RR@10, nDCG@10, R@100]
baseline: plain
systems:
  plain: {{runs: [a, b]}}
  live: {{runs: [a]}}
  {THIRTY}: {{runs: [a, b], blend: {{method: linear, reranker: r}}}}
  {LONGER}: {{runs: [b, a], fusion: {{method: weighted_score, normalize: min_max}}}}
tune:
  system: {LONGER}
  trials: 4
  folds: 2
gate:
  checks:
    RR@10: {{max_drop: 0.01}}
    nDCG@10: {{max_drop: 0.01}}
  system: live
  slices: [local]
"""


def gate_pages(root: Path) -> Iterator[tuple[str, Page]]:
    path = root / "baseline.json"
    update_baseline(cases.gate_inputs(root), path, "first")
    edit(root, cases.EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    inputs = cases.gate_inputs(root)
    yield "gate", build_gate_page(run_gate(inputs, path))
    tested, skipped = split_checks(self_test_checks())
    rates = tuple(measure_pass_rates(tested, runs=20, seed=1))
    case = CaseOutcome(
        name="a guard with 2 of 200 queries lost, 1 % allowed",
        statuses=("inconclusive",) * 3,
        exit_code=0,
        faults=("RR@10 (baseline): pass, and regressed is right",) * 3,
    )
    result = SelfTestResult(
        systems=("a", "b"), agrees=False, rates=rates, cases=(case,), skipped=skipped
    )
    yield "gate --self-test", build_self_test_page(result, "t")
    update_baseline(inputs, path, "second", anchor=True)
    baseline = read_baseline(path)
    assert baseline is not None
    yield "gate --update", build_update_page(baseline)


def evaluation_pages(root: Path) -> Iterator[tuple[str, Page]]:
    file, folders = root / cases.EXPERIMENT, [root / "datasets"]
    report = run_experiment(*read_experiment(file), folders=folders, cache=False)
    yield "eval", build_page(report)
    yield (
        "compare reports",
        build_comparison_page(compare_reports(report, None, baseline=None, candidates=[])),
    )
    lists = {name: root / f"datasets/mine/{name}.trec" for name in "ab"}
    qrels, rerank = root / "datasets/mine/qrels.txt", root / "datasets/mine/r.trec"
    files = compare_files(qrels, lists, measures=["RR@10", "nDCG@10"])
    yield "compare files", build_page(files)
    given = StarterInput(qrels, lists, {"r": RerankFile(rerank)}, ["RR@10"])
    starter = compare_starter_systems(given)
    yield "try", build_starter_page(starter.report, starter.notes)
    for system in (THIRTY, LONGER):
        explanation = explain_query(*read_experiment(file), "q1", system=system, folders=folders)
        for document in (None, "d1"):
            traces = select_traces(explanation, document, against=None, top=10)
            page = build_explanation_page(explanation, traces, with_terms=document is not None)
            yield f"explain {system} {document}", page
    diagnosis = diagnose_experiment(*read_experiment(file), folders=folders)
    yield "diagnose", build_diagnosis_page(diagnosis)
    for kind in KINDS:
        yield f"diagnose --kind {kind}", build_diagnosis_page(diagnosis, kind)

    def no_progress() -> nullcontext[Progress]:
        return nullcontext(ignore_progress)

    options, out = TuneOptions(plots=False), root / "tuning"
    for tuned, _ in run_tuning(*read_experiment(file), options, out, folders, no_progress):
        yield "tune", build_tuning_page(tuned)


def other_tables(root: Path) -> Iterator[tuple[str, Table]]:
    dataset = root / "datasets/mine/dataset.yaml"
    facts = describe_dataset(load_dataset(dataset, cache=False))
    yield from (("dataset show", table) for table in build_list_tables(facts))
    yield "dataset list", build_dataset_table({LONGER: read_spec(dataset)[0]})
    for kind, entries in list_methods().items():
        yield "methods", build_method_table(kind, entries)
    yield "methods", build_connector_table(list_connectors())
    latency = [{"candidates": 50, "queries": 1200, "median_ms": 81.25, "p95_ms": None}]
    yield "rerank", make_record_table("Latency by number of candidates", latency)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Table]]:
    root = cases.make_project(tmp_path_factory.mktemp("project"), mine=EXPERIMENT)
    found = [*other_tables(root)]
    for name, page in (*evaluation_pages(root), *gate_pages(root)):
        sections = (section for section in page.sections if not section.is_folded)
        found += [(name, table) for section in sections for table in section.tables]
    return found


def print_at(table: Table, width: int) -> str:
    file = io.StringIO()
    print_table(table, Console(file=file, width=width, force_terminal=True, color_system=None))
    return file.getvalue()


def dropped_headers(text: str) -> set[str]:
    place = text.find(f"{DROPPED_COLUMNS}: ")
    if place < 0:
        return set()
    names = " ".join(text[place + len(DROPPED_COLUMNS) + 2 :].split())
    return set(re.sub(r" \(use \d+ columns\)\.$", "", names).split(", "))


def row_name(row: Row) -> str:
    return next(cell for cell in row.cells if cell)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_name_and_every_value_is_there(tables: list[tuple[str, Table]], width: int) -> None:
    for command, table in tables:
        text = print_at(table, width)
        lines, where = text.splitlines(), (command, table.title, width)
        assert max(map(cell_len, lines)) <= width, where
        dropped = dropped_headers(text)
        names = name_columns(table)
        pairs = zip(names, table.columns, strict=True)
        optional = {name for name, column in pairs if column.is_optional}
        assert dropped <= optional, where
        assert not dropped or width < 200, where
        squeezed = re.sub(r"\s", "", text)
        for row in table.rows:
            name = row_name(row)
            if len(name) <= MAX_NAME:
                assert any(name in line for line in lines), (*where, name)
            for header, column, cell in zip(names, table.columns, row.cells, strict=True):
                if header in dropped:
                    continue
                if column.is_text:  # its words, whole
                    assert all(word[:MAX_NAME] in squeezed for word in cell.split()), (*where, cell)
                else:
                    assert any(cell in line for line in lines), (*where, name, header, cell)


def test_every_command_that_prints_a_table_is_covered(tables: list[tuple[str, Table]]) -> None:
    commands = {name.split()[0] for name, _ in tables}
    assert commands == {
        *("eval", "tune", "gate", "compare", "try", "explain", "diagnose"),
        *("dataset", "methods", "rerank"),
    }

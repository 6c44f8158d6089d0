"""The page of a diagnosis: which tables it has, and what they say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.evaluation.diagnosis import Diagnosis, diagnose_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.report.diagnosis_page import build_diagnosis_page
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Page, Section, Table
from tests.diagnose_cases import EXPERIMENT, make_project
from tests.report.test_golden import FOLDER


@pytest.fixture
def diagnosis(tmp_path: Path) -> Diagnosis:
    root = make_project(tmp_path)
    parsed, source = read_experiment(root / EXPERIMENT)
    return diagnose_experiment(parsed, source, folders=[root / "datasets"], top=2)


def table(section: Section, word: str) -> Table:
    [found] = [part for part in section.tables if word in part.title]
    return found


def cells(part: Table, row: str) -> dict[str, str]:
    [found] = [item.cells for item in part.rows if item.cells[0] == row]
    return dict(zip((column.header for column in part.columns), found, strict=True))


def keys(page: Page) -> set[str]:
    return {f.key for f in page.sections[0].findings if f.tone != "warning"}


def test_page(diagnosis: Diagnosis, compare_golden: Callable[[Path, str], None]) -> None:
    page = replace(build_diagnosis_page(diagnosis), provenance=None)
    compare_golden(FOLDER / "diagnosis.md", render_page(page))


def test_a_kind_that_cannot_occur_is_named_once(diagnosis: Diagnosis) -> None:
    [collection] = diagnosis.collections
    systems = tuple(
        system.model_copy(
            update={
                "counts": tuple(
                    count.model_copy(update={"not_applicable": "why", "change": None})
                    if count.kind == "inversion"
                    else count
                    for count in system.counts
                )
            }
        )
        for system in collection.systems
    )
    changed = collection.model_copy(update={"systems": systems})
    page = build_diagnosis_page(diagnosis.model_copy(update={"collections": (changed,)}))
    assert "not_applicable" in keys(page)
    counts = table(page.sections[0], "Failures")
    assert [column.header for column in counts.columns][1:] == ["dilutions", "burials", "misses"]


def test_lists_are_folded_unless_one_is_asked_for(diagnosis: Diagnosis) -> None:
    page = build_diagnosis_page(diagnosis)
    folded = [section.title for section in page.sections if section.is_folded]
    kinds = [title.split()[2] for title in folded]
    assert kinds == ["dilutions", "burials", "misses", "inversions"]
    page = build_diagnosis_page(diagnosis, "burial")
    [_, section] = page.sections
    assert not section.is_folded
    burials = table(section, "buried: 4 burials")
    assert len(burials.rows) == 2
    [note] = burials.notes
    assert "--top 4 " in note
    assert cells(burials, "q4")["rank"] == "12"
    tables = [part.title for part in page.sections[0].tables]
    assert not [title for title in tables if "dilutions" in title]


def test_a_question_or_a_kind_that_only_one_has_is_not_compared(tmp_path: Path) -> None:
    root = make_project(tmp_path)
    parsed, source = read_experiment(root / EXPERIMENT, overrides=["baseline=keyword"])
    diagnosis = diagnose_experiment(parsed, source, folders=[root / "datasets"])
    assert "not_compared" in keys(build_diagnosis_page(diagnosis))
    parsed, source = read_experiment(root / EXPERIMENT)
    folders = [root / "datasets"]
    diagnosis = diagnose_experiment(parsed, source, folders=folders, systems=["keyword"])
    assert "not_compared" in keys(build_diagnosis_page(diagnosis))

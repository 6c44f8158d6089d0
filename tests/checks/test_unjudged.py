"""What unjudged documents could change."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from fusion_bench.checks.dataset_facts import dataset_notices
from fusion_bench.checks.unjudged import measure_unjudged
from fusion_bench.cli import main
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from fusion_bench.measures import parse_measure
from fusion_bench.stats.unjudged import (
    Direction,
    UnjudgedEvidence,
    UnjudgedResult,
    compare_unjudged,
)
from tests import unjudged_project
from tests.tiny import edit
from tests.unjudged_project import DATASET, EXPERIMENT

QRELS = Qrels.from_dict({"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 0}, "q3": {"e": 1}})
RUN = Run.from_dict(
    "r",
    {
        "q1": {"x": 3.0, "a": 2.0, "b": 1.0},
        "q2": {"c": 3.0, "y": 2.0, "z": 1.0},
        "q3": {"d": 3.0, "w": 2.0, "e": 1.0},
    },
)
TYPES = {"q1": "local", "q2": "global", "q3": "local"}


def measured(*names: str, **options: object) -> tuple[UnjudgedEvidence, ...]:
    system = System.model_validate({"name": "s", "runs": ["r"], **options})
    measures = [parse_measure(name) for name in names]
    return measure_unjudged(system, align(QRELS, [RUN]), measures)


def test_by_hand_at_depths_that_nobody_judged_or_returned() -> None:
    values, judged = measured("P@2", "Judged@10")
    assert values.share == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert values.judged_only == pytest.approx([1 / 2, 1 / 2, 1 / 2])
    # Rank 1: c is relevant, x and d (of q3) are unjudged, so both gain 1. Rank 2: a is relevant.
    assert values.filled == pytest.approx([1, 1, 1])
    assert judged.filled is None
    [values] = measured("P@3")
    # Rank 3: b is not relevant, e is: z gains one half.
    assert values.filled == pytest.approx([2 / 3, 2.5 / 3, 3 / 3])
    [values] = measured("P@3", top_k=1)
    assert values.filled == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert values.share == pytest.approx([1, 0, 1])


def test_means_are_taken_over_all_parts_of_a_system() -> None:
    """One plain system for each query type, and still one mean at each rank."""
    queries = {name: Query(id=name, type=kind) for name, kind in TYPES.items()}
    runs = align(QRELS, [RUN, replace(RUN, name="other")], queries=queries)
    weights = {kind: {"r": 0.6, "other": 0.4} for kind in ("local", "global", "hybrid")}
    parts = System.model_validate(
        {"name": "s", "runs": ["r", "other"], "fusion": "rrf", "weights_by_type": weights}
    )
    alone = System(name="s", runs=("r",))
    by_type, whole = (
        measure_unjudged(system, runs, [parse_measure("P@2")])[0].filled
        for system in (parts, alone)
    )
    assert by_type is not None
    assert whole is not None
    assert by_type.tolist() == whole.tolist()


# ── two systems as their unjudged documents could change the difference


BASELINE = UnjudgedEvidence(
    share=np.array([0.0, 0.1, 0.2, 0.1]),
    judged_only=np.array([0.4, 0.5, 0.6, 0.5]),
    filled=np.array([0.4, 0.5, 0.6, 0.5]),
)
CANDIDATE = UnjudgedEvidence(
    share=np.array([0.5, 0.6, 0.7, 0.6]),
    judged_only=np.array([0.7, 0.9, 0.8, 0.9]),
    filled=np.array([0.6, 0.6, 0.7, 0.7]),
)


def test_all_three_views() -> None:
    difference = compare_unjudged(CANDIDATE, BASELINE)
    record = difference.record
    assert (record.candidate_share, record.baseline_share) == pytest.approx((0.6, 0.1))
    assert record.judged_only == pytest.approx(0.325)
    assert record.low is not None
    assert record.high is not None
    assert 0 < record.low < 0.325 < record.high
    assert record.filled == pytest.approx(0.15)
    assert difference.decides(-1, 0.01)
    assert not difference.decides(1, 0.01)
    assert UnjudgedResult.model_validate_json(record.model_dump_json()) == record


def test_intervals_of_groups_and_of_some_queries() -> None:
    groups = np.array([0, 0, 1, 1])
    plain, grouped = (
        compare_unjudged(CANDIDATE, BASELINE, groups=codes).record for codes in (None, groups)
    )
    assert plain.low is not None
    assert grouped.low is not None
    assert grouped.low < plain.low
    keep = np.array([True, False, False, True])
    pair = (evidence.select_queries(keep) for evidence in (CANDIDATE, BASELINE))
    assert compare_unjudged(*pair).filled == pytest.approx(0.2)


def test_what_is_missing_where_judgments_or_formulas_are() -> None:
    difference = compare_unjudged(CANDIDATE, BASELINE, kind="sparse")
    record = difference.record
    assert (record.judged_only, record.low, record.high, record.filled) == (None,) * 4
    assert record.candidate_share == pytest.approx(0.6)
    assert not difference.decides(-1, 0.01)
    unknown = UnjudgedEvidence(BASELINE.share, BASELINE.judged_only, None)
    assert compare_unjudged(CANDIDATE, unknown).filled is None
    blind = UnjudgedEvidence(CANDIDATE.share, CANDIDATE.judged_only, np.full(4, math.nan))
    difference = compare_unjudged(blind, BASELINE)
    assert all(difference.decides(direction, 0.01) for direction in get_args(Direction))
    assert difference.record.filled is None


# ── judgments of relevant documents only, cut to the first documents of one list


CONDITION = "if unjudged documents are not relevant"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of three judged documents a query, only the relevant one is left."""
    unjudged_project.make(tmp_path)
    qrels = tmp_path / "datasets/mine/qrels.txt"
    lines = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if not line.endswith(" 0\n")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declare(root: Path, judgments: str | None) -> None:
    if judgments is not None:
        edit(root, DATASET, "name: mine", f"name: mine\njudgments: {judgments}")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        raise SystemExit(main(list(arguments)))
    return int(end.value.code or 0)


CASES = pytest.mark.parametrize(
    ("judgments", "answer", "condition"),
    [
        (None, "worse", CONDITION),
        ("sparse", "worse", ""),
        ("complete", "worse", ""),
        ("pooled", "unjudged decide", ""),
    ],
)


@CASES
def test_what_the_dataset_declares_decides_in_eval_and_compare(
    root: Path,
    judgments: str | None,
    answer: str,
    condition: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    declare(root, judgments)
    assert run("eval", EXPERIMENT) == 0
    report = json.loads((root / "reports/mine/report.json").read_text())
    answers = {c["candidate"]: c["answer"] for c in report["collections"][0]["comparisons"]}
    assert answers["fresh"] == answer
    page = (root / "reports/mine/report.md").read_text()
    verdicts = next(line for line in page.splitlines() if "Verdicts on" in line)
    assert (CONDITION in verdicts) is bool(condition)
    capsys.readouterr()
    assert run("compare", "reports/mine/report.json", "--candidate", "fresh", "-v") == 0
    shown = capsys.readouterr().out
    word = "judge first" if answer == "unjudged decide" else answer
    assert f": {word} {condition}".rstrip() + "." in shown


@CASES
def test_what_the_dataset_declares_decides_in_the_gate(
    root: Path, judgments: str | None, answer: str, condition: str
) -> None:
    declare(root, judgments)
    assert run("gate", EXPERIMENT, "--update", "--reason", "first") == 0
    edit(root, EXPERIMENT, "  pooled: {runs: [pooled]}", "  pooled: {runs: [fresh]}")
    is_decided = answer == "unjudged decide"
    assert run("gate", EXPERIMENT) == (3 if is_decided else 1)
    verdict = json.loads((root / "reports/mine/gate.json").read_text())
    status = "unjudged decide" if is_decided else "regressed"
    assert [check["status"] for check in verdict["checks"]] == [status]
    word = "judge first" if is_decided else status
    row = f"| {word} {condition}".rstrip() + " |"
    assert row in (root / "reports/mine/gate.md").read_text()


@CASES
def test_what_the_dataset_declares_decides_in_tune(
    root: Path, judgments: str | None, answer: str, condition: str
) -> None:
    declare(root, judgments)
    is_decided = answer == "unjudged decide"
    assert run("tune", EXPERIMENT) == (3 if is_decided else 0)
    record = json.loads((root / "reports/mine/tuning/tuning.json").read_text())
    assert record["verdict_against_default"] == ("unjudged decide" if is_decided else "ship")
    page = (root / "reports/mine/tuning/tuning.md").read_text()
    verdict = next(line for line in page.splitlines() if "queries of mine" in line)
    assert (f"of mine {CONDITION}: MRR@10" in verdict) is bool(condition)


@pytest.mark.parametrize(("judgments", "asks"), [(None, True), ("pooled", False)])
def test_the_check_asks_for_the_declaration(root: Path, judgments: str | None, asks: bool) -> None:
    declare(root, judgments)
    notices = dataset_notices(load_dataset(root / DATASET))
    assert any("Declare judgments" in notice for notice in notices) is asks

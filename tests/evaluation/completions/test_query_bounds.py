"""Bounds of one system: by the slow loop, and what a report makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.cli import main
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.evaluation.completions import query_bounds
from fusion_bench.evaluation.completions.query_bounds import QueryBounds, find_bounds, grade_scale
from fusion_bench.evaluation.ranking.list_positions import list_parts
from fusion_bench.evaluation.report_records.report import read_report
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from tests import unjudged_project
from tests.evaluation.completions.cases import Case, cases, slow_differences
from tests.tiny import edit

EMPTY: list[str] = []


def bounds_of(name: str, grades: dict[str, int], ids: list[str]) -> QueryBounds | None:
    """Of one list; the qrels hold grade 2, so that it is on the scale."""
    qrels = Qrels.from_dict({"p": {"a": 2}, "q": grades})
    run = Run.from_dict("r", {"p": {"a": 1.0}, "q": {d: -float(i) for i, d in enumerate(ids)}})
    runs = align(qrels, [run])
    parts = list_parts(System(name="r", runs=("r",)), runs, {})
    return find_bounds(parse_measure(name), runs, parts, qrels)


@settings(max_examples=30, deadline=None)
@given(case=cases(), cutoff=st.integers(1, 6), name=st.sampled_from(["nDCG", "RR", "R", "AP"]))
def test_bounds_equal_those_of_the_slow_loop(case: Case, cutoff: int, name: str) -> None:
    grades, ids, _ = case
    bounds = bounds_of(f"{name}@{cutoff}", grades, ids)
    if bounds is None:
        assert set(ids) <= {*grades}
        return
    slow = slow_differences(name, grades, ids, EMPTY, cutoff)
    assert bounds.low[-1] == pytest.approx(min(slow.values()), abs=1e-12)
    assert bounds.high[-1] == pytest.approx(max(slow.values()), abs=1e-12)
    shown = ids[:cutoff]
    assert bounds.judged[-1] == pytest.approx(sum(d in grades for d in shown) / len(shown))


def test_ndcg_can_fall_as_more_is_judged() -> None:
    """A great document at rank 3 raises the ideal more than the list's own gain."""
    bounds = bounds_of("nDCG@3", {"b": 1}, ["b", "c", "d"])
    assert bounds is not None
    assert bounds.low[-1] < 1
    assert bounds.high[-1] == 1


def test_what_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounds_of("Judged@3", {"b": 1}, ["b", "c"]) is None
    assert bounds_of("nDCG@3", {"b": 1}, ["b"]) is None
    assert bounds_of("AP@3", {"b": 1}, ["b", "c"]) is not None
    monkeypatch.setattr(query_bounds, "MOST_SQUARES", 1)
    assert bounds_of("AP@3", {"b": 1}, ["b", "c"]) is None


def test_the_scale() -> None:
    qrels = Qrels.from_dict({"q": {"a": 3, "b": -2}})
    assert [*grade_scale(qrels)] == [0, 1, 2, 3]
    assert [*grade_scale(replace(qrels, grades=qrels.grades * 0))] == [0, 1]
    assert [*grade_scale(replace(qrels, grades=qrels.grades * 100))] == [0, 300]


def test_a_report_states_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unjudged_project.make(tmp_path))
    words = ["eval", unjudged_project.EXPERIMENT, "--no-plots", "--no-html", "--out", "out"]
    assert main(words) == 0
    out = capsys.readouterr().out
    [collection] = read_report(Path("out/report.json")).collections
    bounds = collection.system("fresh").bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == pytest.approx(((1 / 2 + 1 / 3) / 2, 1.0))
    assert bounds.depth == 10
    assert bounds.judged == pytest.approx((3 / 5 + 3 / 4) / 2)
    assert "Judged@10" in out
    assert "0.4167…1.0000" in out
    page = Path("out/report.md").read_text(encoding="utf-8")
    assert "0.4167…1.0000" in page
    edit(tmp_path, unjudged_project.DATASET, "name: mine", "name: mine\njudgments: complete")
    assert main(words) == 0
    assert "if judged" not in capsys.readouterr().out

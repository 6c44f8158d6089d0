"""The benchmark of judging, on a small project."""

from pathlib import Path

from benchmarks.studies.judging_effort import (
    Effort,
    format_table,
    hide_judgments,
    judge_until_decided,
)
from fusion_bench.judging.judge_files import pair_grades
from fusion_bench.judging.pools import read_judged_systems
from tests import unjudged_project


def test_it_judges_until_nothing_could_change_the_answer(tmp_path: Path) -> None:
    root = unjudged_project.make(tmp_path)
    path = root / unjudged_project.EXPERIMENT
    judged = read_judged_systems(path, folders=[root / "datasets"])
    truth = pair_grades(judged.dataset.qrels)
    few = hide_judgments(judged, "pooled", 1)
    assert len(few.dataset.qrels.grades) == unjudged_project.QUERIES
    assert len(few.dataset.qrels) == unjudged_project.QUERIES
    pair = ("fresh", "pooled")
    first, ordered, plan = judge_until_decided(few, truth, pair, "RR@10", None)
    _, at_random, other = judge_until_decided(few, truth, pair, "RR@10", 0)
    assert plan.is_decided
    assert plan.answer == other.answer == "worse"
    assert 0 < ordered <= at_random <= first + 60
    effort = Effort(*pair, "RR@10", first, ordered, at_random, plan.answer)
    assert f"| {first} | {ordered} | {at_random} | worse |" in format_table([effort])

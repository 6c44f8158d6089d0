"""Corrective RAG: which lists can be answered from, and what refined queries change."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.crag import (
    CragThresholds,
    classify_scores,
    judge_list,
    list_evidence,
    name_verdicts,
    system_evidence,
)
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import CragFitSettings, CragRule, CragSettings
from fusion_bench.io.dataset import load_dataset
from fusion_bench.schema import CRAGScore
from tests import tiny

NEXT = np.nextafter


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (1.0, "correct"),
        (0.7, "correct"),
        (NEXT(0.7, 0), "ambiguous"),
        (0.5, "ambiguous"),
        (NEXT(0.3, 1), "ambiguous"),
        (0.3, "incorrect"),
        (0.29, "incorrect"),
        (0.0, "incorrect"),
        (math.nan, "incorrect"),
    ],
)
def test_br_016_thresholds(score: float, verdict: str) -> None:
    """BR-016: from .7 on correct, up to .3 incorrect, ambiguous between them."""
    masks = classify_scores(np.array([score]), CragThresholds())
    assert [name for name, mask in masks.items() if mask[0]] == [verdict]
    assert name_verdicts(np.array([score]), CragThresholds()) == [verdict]
    assert judge_list([score]).relevance == verdict


@pytest.mark.parametrize(
    ("score", "verdict", "needs_search"),
    [(0.9, "correct", False), (0.1, "incorrect", True), (0.5, "ambiguous", True)],
)
def test_br_017_and_ac_type_005_needs_web_search(
    score: float, verdict: str, needs_search: bool
) -> None:
    """AC-TYPE-005, scenarios 1 to 3; scenario 2: ``refinedQuery`` may hold a better query."""
    found = judge_list([0.05, score], refined_query="better")
    assert (found.relevance, found.needs_web_search) == (verdict, needs_search)
    assert found.refined_query == ("better" if needs_search else None)
    assert judge_list([score]).refined_query is None


@pytest.mark.parametrize("score", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_req_type_010_confidence_is_the_score(score: float) -> None:
    verdict = judge_list([0.0, score])
    record = CRAGScore.of_score(score)
    assert (verdict.confidence, verdict.relevance) == (record.confidence, record.relevance)
    assert verdict.needs_web_search == record.needs_web_search


def test_only_the_top_of_the_list_counts() -> None:
    assert judge_list([0.1] * 10 + [0.9]).relevance == "incorrect"
    assert judge_list([0.1] * 10 + [0.9], top=11).relevance == "correct"
    assert judge_list([math.nan, 0.8]).relevance == "correct"


@pytest.mark.parametrize("scores", [[], [math.nan]])
def test_a_list_without_scores_is_incorrect(scores: list[float]) -> None:
    found = judge_list(scores)
    assert (found.relevance, found.confidence, found.needs_web_search) == ("incorrect", 0.0, True)


@pytest.mark.parametrize("score", [1.2, -0.1, math.inf])
def test_scores_are_on_the_unit_scale(score: float) -> None:
    with pytest.raises(ConfigError, match="outside \\[0, 1\\]"):
        judge_list([score])


@pytest.mark.parametrize("settings", [CragRule, CragSettings, CragFitSettings])
def test_crossed_thresholds_are_refused(settings: type[CragRule]) -> None:
    with pytest.raises(ValueError, match=r"lower 0\.9 .* upper 0\.1"):
        settings(upper=0.1, lower=0.9)
    with pytest.raises(ConfigError, match=r"lower 0\.9 .* upper 0\.1"):
        CragThresholds(0.1, 0.9)
    with pytest.raises(ConfigError, match=r"upper 1\.1 is outside \[0, 1\]"):
        judge_list([0.5], CragThresholds(1.1, 0.3))


def test_the_example_of_the_page() -> None:
    page = Path(__file__).parents[2] / "docs/reranking.md"
    code = page.read_text(encoding="utf-8").split("```python\n")[-1].split("```")[0]
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - our own page
    assert "verdict" in names


# ── the verdicts that ``eval`` reports, and the replay of refined queries, by hand


Capture = pytest.CaptureFixture[str]
#: Best scores: q1 .9, q2 .5, q3 .3, q4 .2; q1 and q4 have nothing relevant at the top.
R = """\
q1 Q0 d2 1 0.9 r
q1 Q0 d1 2 0.1 r
q2 Q0 d3 1 0.5 r
q2 Q0 d4 2 0.3 r
q2 Q0 d8 3 0.2 r
q3 Q0 d1 1 0.3 r
q3 Q0 d9 2 0.2 r
q4 Q0 d5 1 0.2 r
q4 Q0 d4 2 0.1 r
"""
SYSTEMS = """\
  two:
    runs: [a, b]
    blend: {method: replace, reranker: r}
    top_k: 1
crag: {top: 1}
split: all
"""
#: The refined query of q4 finds d4, that of q1 finds d1, that of q3 nothing that is relevant.
B_REFINED = "q4 Q0 d4 1 0.9 b\nq1 Q0 d1 1 0.9 b\nq3 Q0 d7 1 0.9 b\n"
R_REFINED = """\
q1 Q0 d1 1 0.9 r
q1 Q0 d2 2 0.1 r
q3 Q0 d7 1 0.4 r
q3 Q0 d1 2 0.1 r
q4 Q0 d4 1 0.8 r
q4 Q0 d5 2 0.1 r
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tiny.make(tmp_path, r=R)
    text = (tmp_path / tiny.EXPERIMENT).read_text(encoding="utf-8")
    text = text[: text.index("  two:")] + SYSTEMS
    (tmp_path / tiny.EXPERIMENT).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refine(root: Path, *, reranker: bool = True) -> None:
    folder = root / "datasets/tiny"
    (folder / "b2.trec").write_text(B_REFINED, encoding="utf-8")
    (folder / "r2.trec").write_text(R_REFINED, encoding="utf-8")
    tiny.edit(root, tiny.DATASET, "{path: b.trec,", "{path: b.trec, refined: b2.trec,")
    if reranker:
        tiny.edit(root, tiny.DATASET, "{path: r.trec,", "{path: r.trec, refined: r2.trec,")


def evaluate(*options: str) -> dict[str, Any]:
    assert main(["eval", tiny.EXPERIMENT, "--out", "out", "-v", *options]) == 0
    collection: dict[str, Any] = read_report("out/report.json").to_dict()["collections"][0]
    return collection


def test_verdicts_of_systems_and_of_lists(root: Path, capsys: Capture) -> None:
    collection = evaluate()
    del root
    out = capsys.readouterr().out
    assert collection["queries"] == ["q1", "q2", "q3", "q4"]
    system, alone = collection["crag"]
    assert (system["name"], system["kind"], system["reranker"]) == ("two", "system", "r")
    assert (alone["name"], alone["kind"], alone["reranker"]) == ("r", "list", "r")
    for result in (system, alone):
        assert result["scores"] == [0.9, 0.5, 0.3, 0.2]
        assert result["verdicts"] == ["correct", "ambiguous", "incorrect", "incorrect"]
        assert result["needs_web_search"] == 3
        assert result["refined"] is None
        counts = {name: result[name] for name in ("correct", "ambiguous", "incorrect")}
        assert [each["queries"] for each in counts.values()] == [1, 1, 2]
        assert [each["share"] for each in counts.values()] == [0.25, 0.25, 0.5]
        assert [each["relevant"] for each in counts.values()] == [0, 1, 1]
        assert [each["precision"] for each in counts.values()] == [0.0, None, 0.5]
        assert counts["incorrect"]["low"] == pytest.approx(0.0126, abs=1e-4)  # 1 of 2
        assert counts["incorrect"]["high"] == pytest.approx(0.9874, abs=1e-4)
    assert "CRAG: which lists " in out
    page = Path("out/report.md").read_text(encoding="utf-8")
    assert "| two (r) | 1 (25.0 %) | 0.0000 " in page
    assert "| rerank list r |" in page


def test_refined_queries_are_replayed(root: Path, capsys: Capture) -> None:
    refine(root)
    collection = evaluate()
    out = capsys.readouterr().out
    # Only q3 and q4 are not correct and have refined lists. RR of "two" is q3 1 → 0, q4 0 → 1.
    system, alone = (result["refined"] for result in collection["crag"])
    assert system["queries"] == alone["queries"] == ["q3", "q4"]
    assert system["measure"] == "RR@10"
    assert (system["before"], system["after"], system["difference"]) == (0.5, 0.5, 0.0)
    assert (system["mean_before"], system["mean_after"]) == (0.5, 0.5)
    # The whole list: q3 1 → 1/2, q4 1/2 → 1.
    assert (alone["before"], alone["after"]) == (0.75, 0.75)
    for result in (system, alone):
        assert result["verdicts"] == ["ambiguous", "correct"]
        assert (result["relevant_before"], result["relevant_after"]) == (1, 1)
    assert "CRAG: MRR@10 " in out
    row = next(row for row in collection["systems"] if row["name"] == "two")
    assert row["measures"]["RR@10"]["values"] == [0.0, 1.0, 1.0, 0.0]  # as without them


def test_which_verdicts_ask_for_a_refined_query(root: Path, capsys: Capture) -> None:
    refine(root)
    tiny.edit(
        root, tiny.EXPERIMENT, "{top: 1}", "{top: 1, upper: 1.0, lower: 0.25, refine: [ambiguous]}"
    )
    system, _ = evaluate()["crag"]
    assert system["verdicts"] == ["ambiguous", "ambiguous", "ambiguous", "incorrect"]
    assert system["refined"]["queries"] == ["q1", "q3"]
    capsys.readouterr()


def test_refined_lists_are_part_of_the_fingerprint(root: Path, capsys: Capture) -> None:
    before = evaluate()
    refine(root)
    after = evaluate()
    assert set(after["digests"]) - set(before["digests"]) == {"runs/b refined", "rerank/r refined"}
    tiny.edit(root, tiny.EXPERIMENT, "crag: {top: 1}\n", "")
    assert evaluate()["fingerprint"] == before["fingerprint"]
    capsys.readouterr()


def test_candidates_of_a_refined_query_need_scores(root: Path, capsys: Capture) -> None:
    refine(root, reranker=False)
    assert main(["eval", tiny.EXPERIMENT, "--out", "out", "--no-plots"]) == 2
    err = capsys.readouterr().err
    assert ": system 'two': " in err


def test_a_refined_file_that_is_not_there(root: Path, capsys: Capture) -> None:
    refine(root)
    (root / "datasets/tiny/b2.trec").unlink()
    assert main(["eval", tiny.EXPERIMENT, "--out", "out"]) == 2
    assert "runs.b.refined" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{top: 1}", "{upper: 0.2}", "lower 0.3 is above upper 0.2: swap them"),
        ("{top: 1}", "{top: 0}", "crag.top"),
        ("{top: 1}", "{credit: 0.8}", "crag.credit"),
        ("{top: 1}", "{refine: [wrong]}", "crag.refine"),
        ("{top: 1}", "{upper: .nan}", "given .nan"),
    ],
)
def test_settings_that_are_refused(
    root: Path, capsys: Capture, old: str, new: str, message: str
) -> None:
    tiny.edit(root, tiny.EXPERIMENT, old, new)
    assert main(["eval", tiny.EXPERIMENT, "--out", "out"]) == 2
    assert message in capsys.readouterr().err


def test_a_dataset_without_absolute_scores(root: Path, capsys: Capture) -> None:
    tiny.edit(root, tiny.DATASET, "score_space: unit", "score_space: unbounded")
    assert main(["eval", tiny.EXPERIMENT, "--out", "out"]) == 2
    err = capsys.readouterr().err
    assert "logit, log_prob" in err
    assert "'r' is unbounded" in err


def test_dataset_check_reads_refined_lists(root: Path, capsys: Capture) -> None:
    refine(root)
    assert main(["dataset", "check", "tiny"]) == 0
    (root / "datasets/tiny/b2.trec").write_text("q1 Q0 d1 1 nan b\n", encoding="utf-8")
    assert main(["dataset", "check", "tiny"]) == 2
    assert "b2.trec:1: score nan" in capsys.readouterr().err


# ── the evidence on rerank lists and systems of the tiny dataset, by hand


QUERIES = ("q1", "q2", "q3", "q4")


def test_a_list_by_itself(tmp_path: Path) -> None:
    dataset = load_dataset(tiny.make(tmp_path) / tiny.DATASET)
    evidence = list_evidence(dataset, "r", QUERIES, CragRule())
    assert evidence.scores.tolist() == [0.9, 0.8, 0.6, 0.7]
    assert evidence.relevant.tolist() == [True] * 4
    strict = list_evidence(dataset, "r", ("q2", "q3"), CragRule(grade=2))
    assert strict.scores.tolist() == [0.8, 0.6]
    assert strict.relevant.tolist() == [True, False]


def test_only_the_top_counts_and_a_query_without_a_list_has_no_score(tmp_path: Path) -> None:
    r = "q1 Q0 d2 1 0.9 r\nq1 Q0 d1 2 0.8 r\nq2 Q0 d3 1 0.1 r\n"
    dataset = load_dataset(tiny.make(tmp_path, r=r) / tiny.DATASET)
    first = list_evidence(dataset, "r", QUERIES, CragRule(top=1))
    np.testing.assert_array_equal(first.scores, [0.9, 0.1, math.nan, math.nan])
    assert first.relevant.tolist() == [False, True, False, False]
    assert list_evidence(dataset, "r", QUERIES, CragRule(top=2)).relevant.tolist()[0] is True


@pytest.mark.parametrize(("space", "link"), [("logit", lambda x: 1 / (1 + math.exp(-x)))])
def test_scores_are_brought_to_the_unit_scale(tmp_path: Path, space: str, link: object) -> None:
    root = tiny.make(tmp_path)
    tiny.edit(root, tiny.DATASET, "score_space: unit", f"score_space: {space}")
    evidence = list_evidence(load_dataset(root / tiny.DATASET), "r", ("q1",), CragRule())
    assert callable(link)
    assert evidence.scores[0] == pytest.approx(link(0.9))


def test_the_final_lists_of_a_system(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    tiny.edit(root, tiny.EXPERIMENT, "reranker: r}", "reranker: r}\n    top_k: 1")
    dataset = load_dataset(root / tiny.DATASET)
    experiment, _ = read_experiment(root / tiny.EXPERIMENT)
    runs = dataset.aligned(["a", "b"])
    evidence = system_evidence(experiment.systems["two"], runs, CragRule())
    assert evidence is not None
    assert runs.queries == ("q1", "q2", "q3", "q4")
    # q2: d3 is second in both lists, and d4 and d8 are first in one each.
    assert evidence.scores.tolist() == [0.9, 0.8, 0.6, 0.7]
    assert system_evidence(experiment.systems["one"], runs, CragRule()) is None

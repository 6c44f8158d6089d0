"""The verdicts that ``eval`` reports, and the replay of refined queries, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from tests import tiny

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
    assert main(["eval", tiny.EXPERIMENT, "--out", "out", "--no-plots", *options]) == 0
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


def test_without_the_key_there_are_no_verdicts(root: Path, capsys: Capture) -> None:
    tiny.edit(root, tiny.EXPERIMENT, "crag: {top: 1}\n", "")
    assert evaluate()["crag"] == []
    assert "CRAG" not in capsys.readouterr().out


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
    assert "CRAG: RR@10 (MRR) " in out
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
    assert "space unit, logit, log_prob" in err
    assert "'r' is unbounded" in err


def test_a_list_that_no_system_reads_is_judged_too(root: Path, capsys: Capture) -> None:
    tiny.edit(root, tiny.EXPERIMENT, "    blend: {method: replace, reranker: r}\n", "")
    assert [(each["name"], each["kind"]) for each in evaluate("--json")["crag"]] == [("r", "list")]
    assert json.loads(capsys.readouterr().out)["collections"][0]["crag"][0]["name"] == "r"


def test_dataset_check_reads_refined_lists(root: Path, capsys: Capture) -> None:
    refine(root)
    assert main(["dataset", "check", "tiny"]) == 0
    (root / "datasets/tiny/b2.trec").write_text("q1 Q0 d1 1 nan b\n", encoding="utf-8")
    assert main(["dataset", "check", "tiny"]) == 2
    assert "b2.trec:1: score nan" in capsys.readouterr().err

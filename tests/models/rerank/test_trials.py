"""Scores for systems of several trials: a blend has each score that any trial asks for."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import AlignmentError
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.experiment.system import System
from fusion_bench.models.rerank_run import prepare_request
from fusion_bench.report.evaluation_page import cost_table
from tests import counts_project
from tests.models.rerank.collection import write
from tests.tiny import DATASET, edit
from tests.trials_project import FIRST, THIRD, TRIALS, make, make_plain

BLENDED = """\
dataset: tiny
split: all
measures: [RR@10]
baseline: a
systems:
  a: {runs: [a]}
  blended: {runs: [a], blend: {method: replace, reranker: scores, depth: 1}}
"""
ALONE = System("a", ["a"])


def add_texts(root: Path) -> None:
    folder = root / "datasets/tiny"
    edit(root, DATASET, "qrels: qrels.txt\n", "qrels: qrels.txt\ndocuments: corpus.jsonl\n")
    write(folder / "corpus.jsonl", [json.dumps({"id": f"d{i}", "text": f"{i}"}) for i in range(10)])
    rows = map(json.loads, (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    write(folder / "queries.jsonl", [json.dumps({**row, "text": row["id"]}) for row in rows])


def candidates(root: Path, depth: int) -> dict[str, list[str]]:
    request = prepare_request(root / DATASET, ALONE, depth=depth)
    return {query.id: [*query.candidates] for query in request.queries}


def test_candidates_are_those_of_every_trial(tmp_path: Path) -> None:
    make(tmp_path, *TRIALS)
    add_texts(tmp_path)
    assert candidates(tmp_path, 1) == {
        "q1": ["d2", "d1"],  # the second trial has d1 first
        "q2": ["d8"],
        "q3": ["d1"],
        "q4": ["d5"],  # the third trial has nothing
    }
    assert prepare_request(tmp_path / DATASET, ALONE, depth=1).repeats == 3
    make(later := tmp_path / "later", THIRD, FIRST)
    add_texts(later)
    assert candidates(later, 1)["q4"] == ["d5"], "a later trial alone answers it"


def test_candidates_go_by_their_best_rank(tmp_path: Path) -> None:
    later = FIRST.replace("q1 Q0 d1", "q1 Q0 d9")
    make(tmp_path, FIRST, later)
    add_texts(tmp_path)
    lists = {}
    for number, text in enumerate((FIRST, later)):
        make_plain(root := tmp_path / f"{number}", text)
        add_texts(root)
        lists[number] = candidates(root, 2)["q1"]
    assert lists == {0: ["d2", "d1"], 1: ["d2", "d9"]}
    assert candidates(tmp_path, 2)["q1"] == ["d2", "d1", "d9"]


def test_a_trial_that_cannot_be_aligned_is_named(tmp_path: Path) -> None:
    make(tmp_path, FIRST, "other Q0 d1 1 1 a\n")
    add_texts(tmp_path)
    with pytest.raises(AlignmentError, match="tiny, trial 2: "):
        candidates(tmp_path, 1)


def test_a_blend_over_trials_misses_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, *TRIALS)
    add_texts(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = ["rerank", "--dataset", "tiny", "--system", "a", "--provider", "noop", "--depth", "1"]
    assert main([*given, "--dry-run"]) == 0
    said = "candidates of a query: those of 3 trials of the lists, each document once"
    out = capsys.readouterr().out
    assert "4 queries, 5 documents" in out
    assert said in out
    assert main([*given, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 3
    assert main([*given, "--out", "datasets/tiny/scores.jsonl"]) == 0
    assert said in capsys.readouterr().out
    (tmp_path / "blended.yaml").write_text(BLENDED, encoding="utf-8")
    assert main(["eval", "blended.yaml", "--no-plots", "--out", "r"]) == 0
    [collection] = read_report(tmp_path / "r/report.json").collections
    values = {row.name: row.measures["RR@10"].trials for row in collection.systems}
    assert values["blended"] == values["a"]  # of one candidate any score keeps the order
    table = cost_table(collection)
    assert table is not None
    assert "of 3 trials" in table.notes[1]


def test_a_fusion_of_unequal_numbers_has_the_trials_of_all_its_lists(tmp_path: Path) -> None:
    found = []
    for root, count in ((tmp_path / "unequal", 3), (tmp_path / "equal", 2)):
        path = counts_project.make(root, a=counts_project.RANKS["a"][:count])
        texts = [json.dumps({"id": f"q{q}", "text": f"{q}"}) for q in counts_project.QUERIES]
        write(path.parent / "queries.jsonl", texts)
        texts = [json.dumps({"id": f"{kind}{n}", "text": kind}) for kind in "rx" for n in range(6)]
        write(path.parent / "corpus.jsonl", texts)
        named = "name: counts\nqueries: queries.jsonl\ndocuments: corpus.jsonl\n"
        rerank = 'rerank:\n  b2: {path: "b-*.trec", score_space: order}\n'
        text = path.read_text(encoding="utf-8").replace("name: counts\n", named)
        path.write_text(text + rerank, encoding="utf-8")
        request = prepare_request(path, System(name="ab", runs=("a", "b")), depth=2)
        assert request.repeats == 2
        found.append([[*query.candidates.items()] for query in request.queries])
    assert found[0] == found[1]

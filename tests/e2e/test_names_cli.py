"""Aliases, sweeps and ``--set`` in every command that reads an experiment."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.tiny import EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]

SWEEP = """\
dataset: tiny
measures: [mrr@10, ndcg_cut_10]
baseline: one
systems:
  one: {runs: [a]}
  rrf: {runs: [a, b], fusion: {method: rrf, k: [10, 60]}}
  sum: {runs: [a, b], fusion: {method: convex, alpha: 0.7}}
tune: {system: sum, trials: 4, folds: 0, front: {method: none}}
gate: {system: sum, checks: {hit@1: {max_drop: 0.5}}}
"""
NOTES = (
    "note: mrr@10 → RR@10",
    "note: ndcg_cut_10 → nDCG@10",
    "note: hit@1 → Success@1",
    "note: convex → weighted_score, normalize min_max, missing zero "
    "(divides by Σ w: the same order)",
)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    monkeypatch.chdir(tiny.make(tmp_path))
    (tmp_path / EXPERIMENT).write_text(SWEEP, encoding="utf-8")
    return tmp_path


def run(capsys: Capture, *arguments: str) -> tuple[Any, tuple[str, ...]]:
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), tuple(err.splitlines())


def test_eval_reads_aliases_and_sweeps_and_says_so_once(capsys: Capture) -> None:
    report, lines = run(capsys, "eval", EXPERIMENT, "--no-plots")
    assert lines == NOTES
    (collection,) = report["collections"]
    systems = [row for row in collection["systems"] if row["kind"] == "system"]
    assert collection["measures"] == report["settings"]["measures"] == ["RR@10", "nDCG@10"]
    assert [row["name"] for row in systems] == ["one", "rrf k=10", "rrf k=60", "sum"]
    assert [row["config"]["fusion"].get("k") for row in systems] == [60, 10, 60, None]
    assert systems[-1]["config"]["fusion"]["alpha"] == 0.7
    assert report["provenance"]["overrides"] == []


def test_eval_records_what_the_command_line_set(capsys: Capture) -> None:
    options = ("--set", "systems.rrf.fusion.k=[5, 7]", "--set", "measures=[map]")
    report, _ = run(capsys, "eval", EXPERIMENT, "--no-plots", *options)
    assert report["provenance"]["overrides"] == [*options[1::2]]
    assert report["collections"][0]["measures"] == ["AP"]
    assert {"rrf k=5", "rrf k=7"} < {row["name"] for row in report["collections"][0]["systems"]}
    assert main(["eval", EXPERIMENT, "-v", *options]) == 0
    out = capsys.readouterr().out
    assert "measure: MAP" in out
    assert "systems.rrf.fusion.k=[5, 7]" in out


def test_a_value_that_is_set_equals_one_that_is_written(root: Path, capsys: Capture) -> None:
    changed, _ = run(
        capsys, "eval", EXPERIMENT, "--no-plots", "--set", "systems.sum.fusion.alpha=0.2"
    )
    edit(root, EXPERIMENT, "alpha: 0.7", "alpha: 0.2")
    written, _ = run(capsys, "eval", EXPERIMENT, "--no-plots")
    assert changed["collections"] == written["collections"]


def test_gate(capsys: Capture) -> None:
    update = ("gate", EXPERIMENT, "--update", "--reason", "first")
    assert main(update) == 0
    capsys.readouterr()
    verdict, _ = run(capsys, "gate", EXPERIMENT)
    assert [check["measure"] for check in verdict["checks"]] == ["Success@1"]
    assert verdict["config_changes"] == {}
    verdict, _ = run(capsys, "gate", EXPERIMENT, "--set", "systems.sum.fusion.alpha=0.69")
    assert [*verdict["config_changes"].values()] == [[0.7, 0.69]]


def test_a_baseline_is_of_a_file_without_changes(capsys: Capture) -> None:
    update = ("gate", EXPERIMENT, "--update", "--reason", "first")
    assert main([*update, "--set", "seed=3"]) == 2
    assert "with --update" in capsys.readouterr().err


def test_fuse(root: Path, capsys: Capture) -> None:
    lists = []
    for alpha in ("0", "1"):
        change = ("--set", f"systems.sum.fusion.alpha={alpha}")
        main(["fuse", EXPERIMENT, "--system", "sum", "--out", "out.trec", *change])
        lists.append((root / "out.trec").read_text(encoding="utf-8"))
    assert lists[0] != lists[1]
    capsys.readouterr()
    files = ("a=datasets/tiny/a.trec", "b=datasets/tiny/b.trec")
    _, lines = run(capsys, "fuse", *files, "--method", "combsum", "--out", "out.trec")
    assert [line.split(",")[0] for line in lines] == ["note: combsum → comb_sum"]


def test_compare_takes_the_names_of_trec_eval(capsys: Capture) -> None:
    files = ("datasets/tiny/a.trec", "datasets/tiny/b.trec")
    report, lines = run(
        capsys, "compare", "--qrels", "datasets/tiny/qrels.txt", *files, "--measure", "recip_rank"
    )
    assert report["collections"][0]["measures"] == ["RR"]
    assert lines == ("note: recip_rank → RR",)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("systems.rrf.fusion.q=1", "k=10.fusion.q: unknown key 'q'"),
        ("systems.nope.depth=1", "--set systems.nope.depth=1: "),
        ("depth", "depth: KEY=VALUE"),
        ("baseline=rrf", "one of 'rrf k=10', 'rrf k=60'"),
        ("systems.one.fusion.alpha=0.3", "alpha needs two"),
    ],
)
def test_one_line_and_exit_code_2(override: str, message: str, capsys: Capture) -> None:
    assert main(["eval", EXPERIMENT, "--set", override]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_methods_lists_the_aliases(capsys: Capture) -> None:
    found, _ = run(capsys, "methods")
    assert found["aliases"]["combsum"] == {"method": "comb_sum"}
    assert found["aliases"]["convex"] == {
        "method": "weighted_score",
        "normalize": "min_max",
        "missing": "zero",
    }

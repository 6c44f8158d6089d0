"""``fusion-bench fuse``, as a user runs it."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.io.load_records import load_run
from tests.tiny import EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("root")
A, B = (f"{name}=datasets/tiny/{name}.trec" for name in "ab")


def test_a_system_of_an_experiment(root: Path, capsys: Capture) -> None:
    assert main(["fuse", EXPERIMENT, "--system", "two", "--out", "new/two.jsonl", "--sources"]) == 0
    assert "(two over a, b, r: 4 " in capsys.readouterr().out
    rows = [json.loads(line) for line in (root / "new/two.jsonl").read_text().splitlines()]
    assert [row["rank"] for row in rows if row["query"] == "q2"] == [1, 2, 3]
    first = next(row for row in rows if row["document"] == "d3")
    assert first["sources"]["r"] == {"rank": 1, "score": 0.8}


def test_only_one_split(capsys: Capture) -> None:
    arguments = ["fuse", EXPERIMENT, "--system", "one", "--out", "one.trec", "--json"]
    assert main([*arguments, "--split", "dev"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 1
    assert load_run(Path("one.trec")).queries == ("q3",)


def test_run_files_need_no_experiment(capsys: Capture) -> None:
    assert main(["fuse", A, B, "--set", "k=1", "--out", "f.csv"]) == 0
    assert main(["fuse", A, B, "--method", "convex", "--out", "c.csv", "--json"]) == 0
    out = capsys.readouterr().out
    assert '"system":"convex"' in out
    assert load_run(Path("f.csv")).to_dict()["q3"] == {"d1": 1 / 2 + 1 / 3, "d9": 1 / 2}


def test_of_several_datasets_one_is_chosen(root: Path, capsys: Capture) -> None:
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, other]")
    arguments = ["fuse", EXPERIMENT, "--system", "one", "--out", "f.trec"]
    assert main(arguments) == 2
    assert "--dataset: tiny, other" in capsys.readouterr().err
    assert main([*arguments, "--dataset", "tiny"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([EXPERIMENT, "--out", "f.trec"], "name a system"),
        ([EXPERIMENT, "--system", "on", "--out", "f.trec"], "did you mean 'one'"),
        ([EXPERIMENT, "--system", "one", "--out", "f.doc"], "file suffix '.doc'"),
        ([EXPERIMENT, "--system", "one", "--out", "f.trec", "--sources"], "no columns for"),
        ([EXPERIMENT, "--system", "one", "--out", "f.trec", "--split", "tst"], "known: dev, test"),
        ([EXPERIMENT, "--system", "one", "--out", "f.trec", "--method", "rrf"], "does not go with"),
        (["none.yaml", "--system", "one", "--out", "f.trec"], "none.yaml"),
        ([A, B, "--system", "one", "--out", "f.trec"], "with run files"),
        ([A, B, "--set", "k", "--out", "f.trec"], "is not KEY=VALUE"),
        ([A, B, "--set", "k=[", "--out", "f.trec"], "--set k=[: '[' is not"),
        ([A, B, "--set", "k=2026-13-45", "--out", "f.trec"], "value in YAML"),
        ([A, B, "--set", "q=1", "--out", "f.trec"], "unknown key 'q'"),
        ([A, B, "--method", "rff", "--out", "f.trec"], "did you mean 'rrf'"),
        ([A, "b=none.trec", "--out", "f.trec"], "none.trec"),
        *[
            ([A, B, "--out", path], "one of the files")
            for path in ("datasets/../datasets/tiny/a.trec", "datasets/tiny/r.trec")
        ],
        ([A, B, "--out", "f.trec", "--method", ""], "unknown fusion method ''"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["fuse", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert not Path("f.trec").exists()


def test_json_holds_no_command_of_a_ci_runner(root: Path, capsys: Capture) -> None:
    edit(root, EXPERIMENT, "one:", '"##[error]":')
    edit(root, EXPERIMENT, "baseline: one", 'baseline: "##[error]"')
    assert main(["fuse", EXPERIMENT, "--system", "##[error]", "--out", "f.trec", "--json"]) == 0
    out = capsys.readouterr().out
    assert "##[" not in out
    assert json.loads(out)["system"] == "##[error]"

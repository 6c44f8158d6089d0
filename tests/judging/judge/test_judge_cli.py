"""``judge`` without a terminal: lists, spreadsheets, several judges, qrels."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.judging.terminal import require_keys
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]
NO_TEXTS = (
    "note: a judge sees ids alone, as the dataset names no texts: add 'documents: FILE' to "
    f"{DATASET} (pull writes the file with --texts)\n"
)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tiny.make(tmp_path))
    return tmp_path


def run(capsys: Capture, *arguments: str) -> str:
    assert main(["judge", *arguments]) == 0
    out, err = capsys.readouterr()
    assert not err or err.split() == NO_TEXTS.split()
    return out


def refuse(capsys: Capture, *arguments: str) -> str:
    assert main(["judge", *arguments]) == 2
    return capsys.readouterr().err


def judge_sheet(root: Path, capsys: Capture, judge: str, *rows: str) -> None:
    (root / "s.csv").write_text("\n".join(["query,document,grade", *rows]), encoding="utf-8")
    run(capsys, "datasets/tiny", "--judge", judge, "--import", "s.csv")


def test_the_pool_of_a_dataset_and_of_an_experiment(capsys: Capture) -> None:
    rows = run(capsys, "tiny", "--list", "--order", "pool").splitlines()
    assert [row.split("\t") for row in rows] == [
        ["query", "document", "best_rank"],
        *(["q2", "d4", "1"], ["q2", "d8", "1"], ["q3", "d9", "1"], ["q4", "d5", "1"]),
    ]
    rows = run(capsys, EXPERIMENT, "--list", "--order", "pool", "--depth", "1").splitlines()
    assert len(rows) < 5
    one = run(capsys, "tiny", "--list", "--system", "a", "--order", "pool").splitlines()
    assert [row.split("\t")[1] for row in one[1:]] == ["d8", "d5"]


def test_a_second_judge_gets_the_same_documents(root: Path, capsys: Capture) -> None:
    judge_sheet(root, capsys, "ann", "q2,d4,2", "q2,d8,0")
    record = json.loads(run(capsys, DATASET, "--judge", "ann", "--json"))
    assert {row["document"] for row in record["documents"]} == {"d5", "d9"}
    out = run(capsys, DATASET, "--judge", "bob", "--export", "bob.csv")
    assert "4 documents to judge" in out
    assert "grades 0 to 2" in out
    assert out.endswith(f" judge {DATASET} --judge bob --import bob.csv\n")
    assert ",2," not in (root / "bob.csv").read_text(encoding="utf-8")
    target = "datasets/tiny/judgments/qrels.txt"
    run(capsys, DATASET, "--write-qrels", target)
    edit(root, DATASET, "qrels: qrels.txt", "qrels: judgments/qrels.txt")
    record = json.loads(run(capsys, DATASET, "--judge", "bob", "--json"))
    assert len(record["documents"]) == 4


def test_a_sheet_with_grades_is_not_replaced_before_they_are_read(
    root: Path, capsys: Capture
) -> None:
    export = (DATASET, "--judge", "ann", "--export", "s.csv")
    run(capsys, *export)
    run(capsys, *export)
    sheet = root / "s.csv"
    rows = sheet.read_text(encoding="utf-8").splitlines()
    sheet.write_text("\n".join([rows[0], rows[1][:-2] + ",1,"]), encoding="utf-8")
    assert "s.csv is there" in refuse(capsys, *export)
    run(capsys, DATASET, "--judge", "ann", "--import", "s.csv")
    assert "3 documents to judge" in run(capsys, *export)
    sheet.write_text("my notes\n", encoding="utf-8")
    assert "s.csv is there" in refuse(capsys, *export)
    run(capsys, *export, "--force")


def test_a_sheet_without_grades_says_what_to_fill_in(root: Path, capsys: Capture) -> None:
    run(capsys, DATASET, "--export", "s.csv")
    out = run(capsys, DATASET, "--import", "s.csv")
    assert out.startswith("0 grades read")
    assert "column 'grade'" in out
    rows = (root / "s.csv").read_text(encoding="utf-8").splitlines()
    text = "\n".join([rows[0], *(f"{row[:-2]},1," for row in rows[1:])])
    (root / "s.csv").write_text(text, encoding="utf-8")
    run(capsys, DATASET, "--import", "s.csv")
    out = run(capsys, DATASET, "--export", "s.csv")
    assert out.startswith("0 documents to judge")
    assert "--write-qrels" in out


def test_a_judge_who_sees_no_texts_is_told_so(root: Path, capsys: Capture) -> None:
    assert main(["judge", DATASET, "--export", "s.csv"]) == 0
    assert capsys.readouterr().err.split() == NO_TEXTS.split()
    (root / "datasets/tiny/texts.jsonl").write_text('{"id": "d1", "text": "one"}', encoding="utf-8")
    edit(root, DATASET, "qrels:", "documents: texts.jsonl\nqrels:")
    assert main(["judge", DATASET, "--export", "s.csv"]) == 0
    assert capsys.readouterr().err == ""


def test_qrels_beyond_the_datasets_folder_are_to_be_copied(root: Path, capsys: Capture) -> None:
    """A dataset names no file beyond its folder."""
    judge_sheet(root, capsys, "ann", "q2,d4,2")
    out = run(capsys, DATASET, "--write-qrels", "new.txt")
    assert "into datasets/tiny" in out
    assert f"'qrels: new.txt' into {DATASET}\n" in out
    assert "needs --write-qrels" in refuse(capsys, DATASET, "--list", "--combine", "mean")


def test_the_grades_of_all_judges_become_qrels(root: Path, capsys: Capture) -> None:
    judge_sheet(root, capsys, "ann", "q2,d4,2", "q2,d8,0", "q1,d2,1")
    judge_sheet(root, capsys, "bob", "q2,d4,1", "q2,d8,0")
    target = "datasets/tiny/judgments/qrels.txt"
    out = run(capsys, DATASET, "--write-qrels", target)
    assert "(ann, bob): 2 new, 1 " in out
    assert "disagree on 1 (majority" in " ".join(out.split())
    assert f"'qrels: judgments/qrels.txt' into {DATASET}" in out
    rows = (root / target).read_text(encoding="utf-8").splitlines()
    assert {"q2 0 d4 1", "q1 0 d2 1", "q1 0 d1 1"} <= set(rows)
    run(capsys, DATASET, "--write-qrels", target, "--combine", "first")
    assert "q2 0 d4 2" in (root / target).read_text(encoding="utf-8").splitlines()
    edit(root, DATASET, "qrels: qrels.txt", "qrels: judgments/qrels.txt")
    assert "Next:" not in run(capsys, DATASET, "--write-qrels", target)
    assert main(["eval", EXPERIMENT, "--no-plots", "--out", "report"]) == 0


def test_a_dataset_without_judgments(root: Path, capsys: Capture) -> None:
    edit(root, DATASET, "qrels: qrels.txt\n", "")
    rows = run(capsys, DATASET, "--list").splitlines()
    assert len(rows) == 10
    judge_sheet(root, capsys, "ann", "q2,d4,1", "q2,d3,0")
    target = "datasets/tiny/judgments/qrels.txt"
    assert "2 new, 0 with" in run(capsys, DATASET, "--write-qrels", target)
    assert main(["judge", EXPERIMENT, "--next", "5", "--list", "--judge", "ann"]) == 0


def test_a_scale_beyond_the_keys_is_judged_in_a_spreadsheet(root: Path, capsys: Capture) -> None:
    """And the scale holds what a judge has graded, for the next sitting and for other judges."""
    out = run(capsys, "datasets/tiny", "--max-grade", "12", "--export", "s.csv")
    assert "grades 0 to 12" in out
    (root / "s.csv").write_text("query,document,grade\nq2,d4,12\n", encoding="utf-8")
    words = ("datasets/tiny", "--judge", "ann")
    run(capsys, *words, "--max-grade", "12", "--import", "s.csv")
    assert json.loads(run(capsys, *words, "--json"))["max_grade"] == 12
    assert json.loads(run(capsys, "datasets/tiny", "--judge", "bob", "--json"))["max_grade"] == 12
    with pytest.raises(ConfigError, match="up to 12"):
        require_keys(12)
    require_keys(9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tiny", "--export", "a.csv", "--list"), "--list"),
        (("tiny", "--export", "a.xlsx"), "--export: a.xlsx:"),
        (("tiny", "--measure", "P@5"), "needs --next BUDGET"),
        (("tiny", "--next", "5", "--import", "a.csv"), "--next"),
        (("tiny", "--import", "no.csv"), "no.csv: no such"),
        (("nothing",), "nothing"),
        (("tiny", "--judge", "../ann", "--list"), "--judge: '../ann'"),
        (("tiny", "--max-grade", "1", "--list"), "--max-grade: 1"),
        (("tiny", "--max-grade", "1000", "--list"), "up to 999"),
        (("tiny", "--dataset", "x", "--list"), "--dataset: tiny"),
        (("tiny", "--system", "c", "--list"), "--system: unknown system 'c'"),
        ((EXPERIMENT, "--dataset", "x", "--list"), "--dataset: unknown dataset 'x'"),
        (("tiny", "--write-qrels", "q.txt"), "no judge"),
    ],
)
def test_what_cannot_be_done(capsys: Capture, words: tuple[str, ...], message: str) -> None:
    assert message in refuse(capsys, *words)


def test_files_of_the_dataset_are_not_replaced(root: Path, capsys: Capture) -> None:
    judge_sheet(root, capsys, "ann", "q2,d4,2")
    before = (root / "datasets/tiny/qrels.txt").read_bytes()
    err = refuse(capsys, DATASET, "--write-qrels", "datasets/tiny/qrels.txt")
    assert f"files of {DATASET}" in err
    for name in (DATASET, "datasets/tiny/a.trec", "new.txt"):
        assert "name it .csv" in refuse(capsys, EXPERIMENT, "--export", name)
    for judge, sheet in (("ann", "ann"), ("judge", "new")):
        file = f"datasets/tiny/judgments/{sheet}.csv"
        err = refuse(capsys, EXPERIMENT, "--judge", judge, "--export", file, "--force")
        assert f"{file} is one" in err
    (root / "x.trec").write_text("q1 Q0 d1 1 2 x\n", encoding="utf-8")
    err = refuse(capsys, DATASET, "--write-qrels", "x.trec")
    assert "x.trec is there" in err
    assert "name it .txt" in refuse(capsys, DATASET, "--write-qrels", "q.csv")
    assert (root / "datasets/tiny/qrels.txt").read_bytes() == before


def test_judgments_of_a_machine_and_complete_ones_take_no_others(
    root: Path, capsys: Capture
) -> None:
    judge_sheet(root, capsys, "ann", "q2,d4,2")
    edit(root, DATASET, "qrels: qrels.txt", "qrels: {path: qrels.txt, kind: machine}")
    err = refuse(capsys, DATASET, "--write-qrels", "datasets/tiny/judgments/qrels.txt")
    assert "a machine" in err
    assert not (root / "datasets/tiny/judgments/qrels.txt").exists()
    edit(root, DATASET, "name: tiny", "name: tiny\njudgments: complete")
    assert "judgments are complete" in refuse(capsys, DATASET, "--list")

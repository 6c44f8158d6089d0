"""Options of single commands: details, tables, unjudged documents, and names of files."""

import csv
import io
import json
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

Capture = pytest.CaptureFixture[str]


def test_the_file_is_written_where_it_is_asked_for(root: Path, capsys: Capture) -> None:
    path = root / "reports/e/details.json"
    assert main(("eval", EXPERIMENT, "--no-plots", "--detail", "two")) == 0
    assert not path.exists()
    assert main(("eval", EXPERIMENT, "--no-plots", "--details-json")) == 0
    assert "details.json" in "".join(capsys.readouterr())
    [collection] = json.loads(path.read_text(encoding="utf-8"))["collections"]
    assert collection["detailed"] == ["one"]  # it is the best one, too
    command = ("eval", EXPERIMENT, "--no-plots", "--no-html", "--details-json", "--detail", "two")
    assert main(command) == 0
    [collection] = json.loads(path.read_text(encoding="utf-8"))["collections"]
    assert collection["detailed"] == ["one", "two"]
    assert [top["system"] for top in collection["top"]] == ["one", "two"]


def test_an_unknown_system_is_an_error(root: Path, capsys: Capture) -> None:
    assert main(("eval", EXPERIMENT, "--no-plots", "--detail", "tow")) == 2
    text = "".join(capsys.readouterr())
    assert all(part in text for part in ("detail: ", "'tow'", "'two'?"))
    assert not (root / "reports").exists()


# ── ``--latex`` and ``--csv``: files for a paper and for a spreadsheet


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    return "".join(capsys.readouterr())


def cells(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""), strict=True))


def table(path: Path) -> list[dict[str, str]]:
    header, *rows = cells(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_eval_and_compare_write_one_table_for_latex(root: Path, capsys: Capture) -> None:
    text = said(capsys, "eval", EXPERIMENT, "--latex")
    assert "report.tex" in text
    latex = (root / "reports/e/report.tex").read_text(encoding="utf-8")
    assert latex.count("{tabular}") == 2
    assert "system & MRR@10" in latex
    assert "one & 1.0000" in latex
    said(capsys, "compare", "reports/e", "--latex", "--columns", "difference", "--out", "paper")
    latex = (root / "paper/comparison.tex").read_text(encoding="utf-8")
    assert "system & difference" in latex
    assert not (root / "reports/compare").exists()


@pytest.mark.parametrize("word", [(), ("per-query",)])
def test_csv_has_numbers_and_on_request_every_query(
    word: tuple[str, ...], root: Path, capsys: Capture
) -> None:
    said(capsys, "eval", "--csv", *word, EXPERIMENT)
    said(capsys, "compare", "reports/e", "--csv", *word, "--out", "paper")
    report = json.loads((root / "reports/e/report.json").read_text(encoding="utf-8"))
    assert fb.read_report(root / "reports/e") == fb.read_report(root / "reports/e/report.json")
    (collection,) = report["collections"]
    for stem in ("reports/e/report", "paper/comparison"):
        means = {row["system"]: row["mean"] for row in table(root / f"{stem}-systems.csv")}
        assert float(means["one"]) == collection["systems"][0]["measures"]["RR@10"]["mean"]
        rows = table(root / f"{stem}-differences.csv")
        assert list(rows[0])[:4] == ["collection", "measure", "baseline", "candidate"]
        differences = [each["difference"] for each in collection["comparisons"]]
        assert [float(row["difference"]) for row in rows] == differences
        assert (root / f"{stem}-per-query.csv").exists() == bool(word)
    if word:
        rows = table(root / "paper/comparison-per-query.csv")
        assert {row["query"] for row in rows} == set(collection["queries"])
        assert all(float(row["RR@10"]) >= 0 for row in rows)


def test_the_gate_writes_tables(root: Path, capsys: Capture) -> None:
    with (root / EXPERIMENT).open("a", encoding="utf-8") as file:
        file.write("gate: {system: two, checks: {RR@10: {max_drop: 0.01}}}\n")
    said(capsys, "gate", EXPERIMENT, "--update", "--reason", "first")
    said(capsys, "gate", EXPERIMENT, "--csv", "--latex")
    (check,) = table(root / "reports/e/gate-checks.csv")
    assert float(check["difference"]) == 0
    names = [path.name for path in (root / "reports/e").glob("gate-*.tex")]
    assert names
    assert not any("@" in name for name in names)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", EXPERIMENT, "--tables", "csv"], "--latex or --csv"),
        (["gate", EXPERIMENT, "--tables=latex"], "--latex or --csv"),
        (["eval", EXPERIMENT, "--columns", "RR@10"], "--latex"),
        (["eval", EXPERIMENT, "--letters"], "--latex"),
        (["eval", EXPERIMENT, "--no-html", "--detail", "one"], "--detail: "),
        (["eval", EXPERIMENT, "--json", "--markdown", "-"], "with --json"),
        (["eval", EXPERIMENT, "--latex", "--columns", "AP"], "'AP'"),
        (["compare", "--qrels", "no", "no", "--measure", "ndgc"], "'nDCG'"),
        (["tune", EXPERIMENT, "--csv", "per-query"], "'tables'"),
        (["compare", "x.json", "--out", "paper"], "--out"),
        (["gate", EXPERIMENT, "--self-test", "--csv"], "--csv"),
        (["compare", "x.json", "--csv", "--out", EXPERIMENT], "is a file"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: list[str], message: str, capsys: Capture) -> None:
    assert message in said(capsys, *arguments, code=2)


# ── unjudged documents on the command line


pytestmark = pytest.mark.usefixtures("root")


def printed(capsys: Capture, *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_what_to_judge_next(capsys: Capture) -> None:
    """Of the split that is evaluated: d8 is second in one, d4 in two."""
    out = printed(capsys, "dataset", "unjudged", EXPERIMENT)
    head, *rows = (line.split("\t") for line in out.splitlines())
    assert head == ["dataset", "query", "document", "best_rank", "systems"]
    assert rows == [
        ["tiny", "q2", "d4", "2", "one, two"],
        ["tiny", "q2", "d8", "2", "one, two"],
        ["tiny", "q4", "d5", "2", "one, two"],
    ]


def test_some_systems_to_some_depth(capsys: Capture) -> None:
    words = ("--system", "one", "--depth", "2", "--dataset", "tiny", "--json")
    record = json.loads(printed(capsys, "dataset", "unjudged", EXPERIMENT, *words))
    assert record["depth"] == 2
    assert [row["document"] for row in record["documents"]] == ["d8", "d5"]
    assert record["documents"][0]["systems"] == ["one"]


def test_complete_judgments_leave_nothing_to_judge(root: Path, capsys: Capture) -> None:
    edit(root, DATASET, "name: tiny", "name: tiny\njudgments: complete")
    assert len(printed(capsys, "dataset", "unjudged", EXPERIMENT).splitlines()) == 1


def test_an_unknown_system(capsys: Capture) -> None:
    assert main(("dataset", "unjudged", EXPERIMENT, "--system", "thre")) == 2
    assert "unknown system 'thre'" in capsys.readouterr().err


# ── how the values of options are spelled


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dataset", "schema", "--out", ""], "an empty name"),
        (["pull", "python", "--queries", "q.jsonl", "--out", ""], "an empty name"),
        (["eval", tiny.EXPERIMENT, "--datasets", ""], "an empty name"),
        (["eval", "experiments/e\udcff.yaml"], "not UTF-8 text;"),
        (["compare", "--qrels", "q.txt", "a=a\udcff.trec"], "not UTF-8 text;"),
    ],
)
def test_what_names_no_file_is_refused(
    words: list[str], message: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(root.rglob("*"))
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert sorted(root.rglob("*")) == before

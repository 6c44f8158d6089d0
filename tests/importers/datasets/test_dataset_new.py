"""``dataset new``: files → a checked dataset."""

import json
from pathlib import Path

import pytest
import typer
import yaml

from fusion_bench.cli import main
from tests import tiny

Capture = pytest.CaptureFixture[str]
DOCUMENTS = "".join(
    f'{{"id": "d{n}", "text": "{text}"}}\n'
    for n, text in enumerate(["storm", "Storm", "calm", "sea", "ship"], start=1)
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tiny.make(tmp_path))
    Path("documents.jsonl").write_text(DOCUMENTS)
    folder = "datasets/tiny"
    return [
        *("dataset", "new", "datasets/mine", f"a={folder}/a.trec", f"b={folder}/b.trec"),
        *("--qrels", f"{folder}/qrels.txt", "--queries", f"{folder}/queries.jsonl"),
    ]


def find(capsys: Capture, words: list[str]) -> dict[str, dict[str, str]]:
    assert main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    return {each["check"]: each for each in record["findings"]}


def test_the_checks(files: list[str], capsys: Capture) -> None:
    """Counted by hand: d8 and d9 have no text, d1 and d2 have the same one."""
    found = find(capsys, [*files, "--documents", "documents.jsonl"])
    coverage = found["relevant documents in the lists"]
    assert "a 100.0 %, b 100.0 %; together 100.0 %" in coverage["text"]
    assert found["dead ids"]["text"] == "Documents without a text: a 1, b 1."
    assert "2 documents share 1 text" in found["duplicate documents"]["text"]
    leak = found["leaks between splits"]
    assert (leak["status"], "'q1' in test, 'q3'" in leak["text"]) == ("look", True)
    assert "3 evaluated queries" in found["number of queries"]["text"]


def test_what_is_not_given_is_not_checked(files: list[str], capsys: Capture) -> None:
    found = find(capsys, files)
    assert found["dead ids"]["status"] == found["duplicate documents"]["status"] == "not checked"


def test_a_list_without_answers(files: list[str], capsys: Capture) -> None:
    path = Path("datasets/tiny/a.trec")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    found = find(capsys, files)
    finding = found["queries in the lists"]
    assert (finding["status"], "a 1, b 4." in finding["text"]) == ("look", True)


def test_the_dataset_is_ready(files: list[str], capsys: Capture) -> None:
    assert main([*files, "--documents", "documents.jsonl"]) == 0
    assert "eval datasets/mine/" in capsys.readouterr().out
    assert main(("dataset", "check", "datasets/mine/dataset.yaml")) == 0
    assert "documents: documents.jsonl" in Path("datasets/mine/dataset.yaml").read_text()
    assert main(("eval", "datasets/mine/experiment.yaml", "--no-plots", "--no-html")) == 0


def test_without_its_check_the_dataset_is_ready_too(files: list[str], capsys: Capture) -> None:
    assert main([*files, "--no-check"]) == 0
    out = capsys.readouterr().out
    assert "not checked: " in out
    assert "eval datasets/mine/" in out
    assert main(("dataset", "check", "datasets/mine/dataset.yaml")) == 0
    assert main(("eval", "datasets/mine/experiment.yaml", "--no-plots", "--no-html")) == 0


def test_a_broken_file_is_refused_without_the_check_too(files: list[str], capsys: Capture) -> None:
    Path("datasets/tiny/qrels.txt").write_text("q1 0 d1 many\n")
    assert main([*files, "--no-check"]) == 2
    assert ":1: grade 'many'" in capsys.readouterr().err
    assert not Path("datasets/mine").exists()


def test_nobody_is_asked_and_nothing_overwritten(files: list[str], capsys: Capture) -> None:
    assert main(files[:3]) == 2
    assert "nobody can be" in capsys.readouterr().err
    Path("datasets/mine").mkdir()
    Path("datasets/mine/dataset.yaml").write_text("mine")
    assert main(files) == 2
    assert "DIR datasets/mine: " in capsys.readouterr().err


def test_nothing_is_judged_yet(files: list[str], capsys: Capture) -> None:
    words = [*files[:5], *files[7:], "--documents", "documents.jsonl"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "lists answer: a 4, b 4." in out
    assert "Documents without a text: a 1, b 1." in out
    assert "--max-grade 3" in out
    assert "qrels" not in yaml.safe_load(Path("datasets/mine/dataset.yaml").read_text())
    assert main(("judge", "datasets/mine", "--max-grade", "3", "--list")) == 0
    assert "q1\td" in capsys.readouterr().out
    assert main(("eval", "datasets/mine/experiment.yaml")) == 2
    assert "no judgments" in capsys.readouterr().err
    path = Path("datasets/mine/dataset.yaml")
    Path("datasets/mine/qrels.txt").write_bytes(Path(files[6]).read_bytes())
    path.write_text(path.read_text() + "qrels: qrels.txt\n")
    assert main(("eval", "datasets/mine/experiment.yaml", "--no-plots", "--no-html")) == 0


def test_queries_without_a_text(files: list[str], capsys: Capture) -> None:
    Path("some.jsonl").write_text('{"id": "q1", "text": "storm"}\n')
    found = find(capsys, [*files[:5], "--queries", "some.jsonl"])
    finding = found["texts of the queries"]
    assert (finding["status"], "3 queries" in finding["text"]) == ("look", True)
    assert found["dead ids"]["status"] == "not checked"


@pytest.mark.parametrize("judged", [True, False])
def test_files_are_asked_for(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture, *, judged: bool
) -> None:
    """On a terminal: two lists, an empty line, judgments or none, queries, no documents.

    A list with a typing error is asked for again.
    """
    from fusion_bench.cli import dataset

    lists = ["a=nowhere.trec", files[3], files[4], ""]
    answers = iter([*lists, files[6] if judged else "", files[8], ""])
    monkeypatch.setattr(dataset, "_is_terminal", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(answers))
    assert main(files[:3]) == 0
    assert "nowhere.trec: no" in capsys.readouterr().err
    assert Path("datasets/mine/runs/a.trec").exists()
    assert Path("datasets/mine/qrels.txt").exists() == judged

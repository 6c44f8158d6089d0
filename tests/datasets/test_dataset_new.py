"""``dataset new``: files → a checked dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny

Capture = pytest.CaptureFixture[str]
DOCUMENTS = "".join(
    f'{{"id": "d{n}", "text": "{text}"}}\n'
    for n, text in enumerate(["storm", "Storm", "calm", "sea", "ship"], start=1)
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tiny dataset's files as words of the command."""
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
    assert coverage["text"] == (
        "Of 4 relevant documents the lists return: a 100.0 %, b 100.0 %; together 100.0 %."
    )
    assert found["dead ids"]["text"] == "Documents without a text: a 1, b 1."
    assert "2 documents share 1 text" in found["duplicate documents"]["text"]
    leak = found["leaks between splits"]
    assert (leak["status"], "'q1' in test, 'q3' in dev" in leak["text"]) == ("look", True)
    assert "3 evaluated queries show a difference of" in found["number of queries"]["text"]


def test_what_is_not_given_is_not_checked(files: list[str], capsys: Capture) -> None:
    found = find(capsys, files)
    assert found["dead ids"]["status"] == found["duplicate documents"]["status"] == "not checked"


def test_the_dataset_is_ready(files: list[str], capsys: Capture) -> None:
    assert main([*files, "--documents", "documents.jsonl"]) == 0
    assert "Next: fusion-bench eval datasets/mine/experiment.yaml" in capsys.readouterr().out
    assert main(("dataset", "check", "datasets/mine/dataset.yaml")) == 0
    assert "documents: documents.jsonl" in Path("datasets/mine/dataset.yaml").read_text()
    assert main(("eval", "datasets/mine/experiment.yaml", "--no-plots", "--no-html")) == 0


def test_a_list_without_answers(files: list[str], capsys: Capture) -> None:
    path = Path("datasets/tiny/a.trec")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    found = find(capsys, files)
    assert found["queries in the lists"]["status"] == "look"
    assert "the lists answer: a 1, b 4." in found["queries in the lists"]["text"]


def test_nobody_can_be_asked(files: list[str], capsys: Capture) -> None:
    assert main(files[:3]) == 2
    assert "needed where nobody can be asked" in capsys.readouterr().err
    assert main(files[:5]) == 2
    assert "then make them with fusion-bench judge DIR" in capsys.readouterr().err


def test_files_are_asked_for(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: two lists, an empty line, judgments, queries, no documents."""
    from fusion_bench.cli.subcommands import dataset_new

    answers = iter([files[3], files[4], "", files[6], files[8], ""])
    monkeypatch.setattr(dataset_new, "_is_terminal", lambda: True)
    monkeypatch.setattr(dataset_new, "_ask", lambda _: next(answers))
    assert main(files[:3]) == 0
    assert Path("datasets/mine/runs/a.trec").exists()


def test_nothing_is_overwritten(files: list[str], capsys: Capture) -> None:
    Path("datasets/mine").mkdir()
    Path("datasets/mine/dataset.yaml").write_text("mine")
    assert main(files) == 2
    assert "DIR datasets/mine: datasets/mine/dataset.yaml exists" in capsys.readouterr().err

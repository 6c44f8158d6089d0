"""``docs/live.md``: its commands run in their order, with a real LanceDB and a model on loopback.

The model is the one that the page describes: it knows the answers, and adds 1 to every tenth grade.
"""

import csv
import hashlib
import json
import re
import runpy
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.printed import ROOT, copy_clone, parse_console, run_command
from tests.judging.judge.llm.project import JudgingServer
from tests.models.rerank.server import serving

PAGE = (ROOT / "docs/live.md").read_text(encoding="utf-8")
#: Language and text of each block.
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ADDRESS = "http://127.0.0.1:8000/v1"
#: Rows that the page lets a person judge.
JUDGED = 120


def read_lines(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], int]:
    """The grade of a question and a passage's text, in a folder with the collection."""
    copy_clone(tmp_path, "datasets/referee")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    queries = {row["text"]: row["id"] for row in read_lines("datasets/referee/queries.jsonl")}
    documents = {row["text"]: row["id"] for row in read_lines("datasets/referee/documents.jsonl")}
    rows = [line.split() for line in Path("datasets/referee/qrels.txt").read_text().splitlines()]
    grades = {(query, document): int(value) for query, _, document, value in rows}
    return lambda query, text: grades.get((queries[query], documents[text]), 0)


def judge_by_hand(grade: Callable[[str, str], int]) -> None:
    """Fill in the column of the first rows, as the page says."""
    with Path("to-judge.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:JUDGED]:
        row["grade"] = str(grade(row["query_text"], row["document_text"]))
    with Path("judged.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def run_block(language: str, text: str, url: str) -> None:
    """Write the file that a block names, or run its commands and compare what they print."""
    if language != "console":
        head, body = text.split("\n", 1)
        name = head.removeprefix("# ")
        mode = "a" if name.startswith("add to ") else "w"
        with Path(name.removeprefix("add to ")).open(mode, encoding="utf-8") as file:
            file.write(body.replace(ADDRESS, url))
        return
    for command, output in parse_console(text):
        words = shlex.split(command)
        if words[0] == "python":
            runpy.run_path(words[1])
        elif words[0] == "git":
            author = ("-c", "user.name=reader", "-c", "user.email=reader@example.org")
            subprocess.run(["git", *author, *words[1:]], check=True)
        else:
            assert run_command(command, output) == 0, command


def test_from_the_first_line_to_the_last(grade: Callable[[str, str], int]) -> None:
    def answer(query: str, passage: str) -> object:
        value = grade(query, passage)
        digest = hashlib.sha256(f"{query}{passage}".encode()).hexdigest()
        return {"grade": min(3, value + (int(digest, 16) % 10 == 0))}

    subprocess.run(["git", "init", "--quiet"], check=True)
    with serving(JudgingServer("chat", reply=answer, model="qwen3-8b")) as server:
        for language, text in BLOCKS:
            if "--import judged.csv" in text:
                judge_by_hand(grade)
            run_block(language, text, server.url)
    exported = Path("search/search.py").read_text(encoding="utf-8")
    assert "RRFReranker(K=60)" in exported
    compile(exported, "search.py", "exec")
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    assert "reports/baselines/rules.json" in tracked
    gate = json.loads(Path("reports/rules/gate.json").read_text(encoding="utf-8"))
    assert [check["status"] for check in gate["checks"]] == ["unchanged"]

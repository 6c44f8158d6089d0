"""The files of ``docs/architecture.md`` through which a value goes are those of a real call."""

import json
import random
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import fusion_bench
from fusion_bench.cli import main
from fusion_bench.data.aligned_runs import AlignedRuns
from tests.engines.pull import functions

PACKAGE = Path(fusion_bench.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
#: A value goes through so many files at most.
MOST = 30
#: So many files of ``evaluation`` take the aligned lists of one report at most.
MOST_TAKERS = 12
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: one
systems:
  one: {runs: [a, b]}
  two: {runs: [a, b], fusion: {method: rrf, weights: {semantic: 2}}}
tune: {system: one, measure: nDCG@10, trials: 10}
gate: {system: two, checks: {nDCG@10: {max_drop: 0.05}}}
"""
DATASET = """\
name: made
qrels: qrels.txt
queries: queries.jsonl
documents: documents.jsonl
runs:
  a: {path: a.trec, roles: [keyword]}
  b: {path: b.trec, roles: [semantic]}
"""
LEGS = f'legs:\n  one: {{function: "{functions.__name__}:keyword", roles: [keyword]}}\n'
#: What is followed → the command; each runs twice, so that nothing is imported the second time.
COMMANDS = {
    "a rank": "eval experiments/e.yaml --out out --no-cache --no-plots",
    "a rerank score": "rerank --dataset made --system rrf --provider noop --depth 3 "
    "--store {turn}.sqlite --out {turn}.jsonl",
    "a trial": "tune experiments/e.yaml --out {turn} --no-plots",
    "a status": "gate experiments/e.yaml --out out",
    "a hit": "pull python --queries datasets/made/queries.jsonl --config legs.yaml --out {turn}",
}


def list_ways() -> dict[str, list[str]]:
    """The numbered files below each heading ``### The way of …``."""
    sections = re.findall(
        r"^### The way of (.+?)\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return {name: re.findall(r"^\d+\. `([^`]+)`", text, re.MULTILINE) for name, text in sections}


WAYS = list_ways()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "datasets" / "made"
    folder.mkdir(parents=True)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "e.yaml").write_text(EXPERIMENT)
    (tmp_path / "legs.yaml").write_text(LEGS)
    (folder / "dataset.yaml").write_text(DATASET)
    queries = [f"q{number}" for number in range(40)]
    generator = random.Random(7)
    for run in ("a", "b"):
        (folder / f"{run}.trec").write_text("".join(make_lines(queries, generator)))
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {q}d0 1\n{q} 0 {q}d1 0\n" for q in queries))
    texts = [{"id": query, "text": f"alpha {query}"} for query in queries]
    (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in texts))
    texts = [{"id": f"{query}d{i}", "text": "alpha"} for query in queries for i in range(6)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(each) + "\n" for each in texts))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make_lines(queries: list[str], generator: random.Random) -> Iterator[str]:
    for query in queries:
        for rank, document in enumerate(generator.sample(range(6), 6), start=1):
            yield f"{query} Q0 {query}d{document} {rank} {10 - rank} run\n"


def follow(words: list[str]) -> tuple[int, list[str]]:
    """The exit code of a command, and our files in the order in which they are first entered."""
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{PACKAGE}/"):
            entered.setdefault(path.removeprefix(f"{PACKAGE}/"))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        code = main(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return code, list(entered)


def test_each_way_is_followed_and_short() -> None:
    assert set(WAYS) == set(COMMANDS)
    assert all(5 <= len(files) <= MOST for files in WAYS.values())


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("value", COMMANDS)
def test_a_value_goes_through_the_files_that_the_page_names_in_their_order(value: str) -> None:
    if value == "a status":
        assert main([*COMMANDS[value].split(), "--update", "--reason", "first"]) == 0
    assert main(COMMANDS[value].format(turn="first").split()) in (0, 4)
    code, entered = follow(COMMANDS[value].format(turn="second").split())
    assert code in (0, 4)
    assert [file for file in WAYS[value] if file not in entered] == []
    assert sorted(WAYS[value], key=entered.index) == WAYS[value]


@pytest.mark.usefixtures("project")
def test_few_files_of_the_evaluation_take_the_aligned_lists() -> None:
    takers: dict[int, set[str]] = {}
    kept: list[AlignedRuns] = []  # so that no two of them have one id

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(f"{PACKAGE}/evaluation/"):
            return
        code = frame.f_code
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            if isinstance(runs := frame.f_locals.get(name), AlignedRuns):
                kept.append(runs)
                takers.setdefault(id(runs), set()).add(path.removeprefix(f"{PACKAGE}/"))

    sys.setprofile(note)
    try:
        assert main(COMMANDS["a rank"].split()) == 0
    finally:
        sys.setprofile(None)
    assert takers
    assert max(map(len, takers.values())) <= MOST_TAKERS

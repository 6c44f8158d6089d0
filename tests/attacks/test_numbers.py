"""Numbers, keys and ids that one reader takes for something else than another does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run
from tests import tiny
from tests.attacks.attack import Attack
from tests.attacks.loops.mutated_lists import fast_readers, only_plain_readers
from tests.attacks.mutated_tables import write_parquet
from tests.attacks.runner import run_attack
from tests.edits import and_then, replaced, text

LIST, QRELS = "datasets/tiny/a.trec", "datasets/tiny/qrels.txt"
QUERIES, EXPERIMENT = "datasets/tiny/queries.jsonl", tiny.EXPERIMENT
EVAL = ("eval", EXPERIMENT, "--no-plots", "--out", "out")
PLAIN_DIGITS = "a number has plain digits"


def experiment(name: str, old: str, new: str, *says: str) -> Attack:
    return Attack(name, EVAL, replaced(EXPERIMENT, old, new), says=(f"{EXPERIMENT}:", *says))


def fusion(options: str, *says: str) -> Attack:
    new = f"{{method: rrf_v2, {options}}}"
    return experiment(options, "{method: rrf_v2}", new, ":9: ", *says)


def top(line: str, *says: str) -> Attack:
    return experiment(line, "baseline: one", f"{line}\nbaseline: one", ":3: ", *says)


def other_list(name: str, data: bytes, *says: str) -> Attack:
    """A list in a file of another format."""
    changed = and_then(
        replaced("datasets/tiny/dataset.yaml", "a.trec", name), text(f"datasets/tiny/{name}", data)
    )
    return Attack(f"{name} {says[0]}", EVAL, changed, says=(f"datasets/tiny/{name}:", *says))


def jsonl(row: str, *says: str) -> Attack:
    """A list whose second line is given."""
    good = '{"query": "q1", "document": "d1", "score": 2}'
    return other_list("a.jsonl", f"{good}\n{row}\n{good}\n".encode(), ":2: ", *says)


def parquet(column: str, values: Any, *says: str) -> Attack:  # noqa: ANN401 - a list, or an array of pyarrow
    """A Parquet table with another column."""
    columns = {"query": ["q1", "q1"], "document": ["d1", "d2"], "score": [2.0, 1.0]}
    data = write_parquet({**columns, column: values})
    return other_list("a.parquet", data, *says)


def option(*arguments: str) -> Attack:
    """A command whose last two arguments are an option and its number."""
    name, number = arguments[-2:]
    says = (f"'{name}': {PLAIN_DIGITS}", f"given {number!r}")
    return Attack(f"{arguments[0]} {name} {number}", arguments, says=says)


def no_utf8() -> Any:  # noqa: ANN401 - an array of pyarrow, which has no types
    """Two texts, of which the second is no UTF-8."""
    offsets = pa.array([0, 1, 2], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"a\xff")])


ATTACKS = [
    # What YAML or pydantic would take for a number.
    fusion("k: true", "systems.two.fusion.k", "a valid number, given True"),
    fusion("k: '60'", "systems.two.fusion.k", "a valid number, given '60'"),
    fusion("k: 0x3C", PLAIN_DIGITS, "given 0x3C"),
    fusion("k: 6_0", PLAIN_DIGITS),
    fusion("k: 074", PLAIN_DIGITS),
    fusion("k: 1:00", PLAIN_DIGITS),
    fusion("k: .inf", PLAIN_DIGITS),
    fusion("k: ６０", "a valid number, given '６０'"),
    fusion("bonus: {1: .05, 0x1: .5}", PLAIN_DIGITS),
    fusion("bonus: {1: .05, 0b11: .5}", PLAIN_DIGITS),
    *[
        fusion(f"bonus: {{1: .05, {key}: .5}}", f"bonus.{key}", "the same key as 1")
        for key in ("1.0", "+1", "true")
    ],
    fusion("bonus: {1: .05, '1': .5}", "bonus.1", "appears twice"),
    fusion("bonus: {1.0: .5}", "bonus", "a valid integer, given 1.0"),
    fusion("bonus: {1: true}", "bonus.1", "given True"),
    top("gate: {checks: {nDCG@10: {max_drop: true}}}", "max_drop", "given True"),
    top("gate: {checks: {nDCG@10: {max_drop: '1'}}}", "max_drop", "given '1'"),
    top("gate: {checks: {nDCG@10: {max_drop: 0_005}}}", PLAIN_DIGITS),
    top("gate: {checks: {nDCG@10: {max_drop: 1:30}}}", PLAIN_DIGITS),
    top("seed: 99999999999999999999", "at most 9223372036854775807"),
    top(f"seed: {'9' * 5000}", "at most 9223372036854775807"),
    top("alpha: 1.0e+999", "a number is finite"),
    experiment("runs as a set", "one:\n    runs: [a, b]", "one:\n    runs: !!set {a, b}", "!!set"),
    experiment("endless top_k", "[a, b]\n  two", f"[a, b]\n    top_k: {10**20}\n  two", "at most"),
    experiment("endless cutoff", "nDCG@10", f"nDCG@{10**20}", "measures.1", "at most"),
    experiment("longest cutoff", "nDCG@10", f"nDCG@{'9' * 5000}", "measures.1", "500 characters"),
    experiment("cutoff of Python", "nDCG@10", "nDCG@1_0", "measures.1", "'1_0'", "plain digits"),
    experiment("grade of Python", "RR@10", "RR(rel=0x1)@10", "measures.0", "'0x1'", "plain digits"),
    Attack(
        "number set by an option",
        (*EVAL, "--set", "systems.two.fusion.k=6_0"),
        says=("--set systems.two.fusion.k=6_0: ", PLAIN_DIGITS),
    ),
    option("tune", EXPERIMENT, "--trials", "1_0"),
    option("tune", EXPERIMENT, "--timeout", "inf"),
    option("gate", EXPERIMENT, "--self-test", "--simulations", " 100"),
    option("serve", EXPERIMENT, "--no-open", "--port", "8_765"),
    option("rerank", "--dataset", "d", "--system", "s", "--provider", "p", "--max-cost", "1_5"),
    option("retrieve", "bm25", "--dataset", "d", "--depth", "1_0"),
    # Keys that stand twice, where JSON's own rule keeps the last.
    jsonl('{"query": "q1", "document": "d2", "score": 9, "score": 1}', "'score' appears twice"),
    jsonl('{"query": "q1", "query": "q2", "document": "d2", "score": 1}', "'query' appears twice"),
    jsonl('{"query": "q1", "document": "d2", "score": 1, "x": {"y": 1, "y": 2}}', "'y'"),
    Attack(
        "key of a query that appears twice",
        EVAL,
        text(QUERIES, '{"id": "q1"}\n{"id": "q2", "type": "local", "type": "global"}\n'),
        says=(f"{QUERIES}:2: ", "'type' appears twice"),
    ),
    # Ids that are no text.
    parquet("document", [b"d1", b"d2"], ":1: the document id is b'd1'"),
    parquet("document", [["d1"], ["d2"]], ":1: the document id is ['d1']"),
    parquet("query", ["q1", None], ":2: the query id is null"),
    parquet("query", [1.0, 2.0], ":1: the query id is 1.0"),
    parquet("document", no_utf8(), ":2: the document cannot be read: 'utf-8'"),
    parquet("score", [b"2", b"1"], ":1: score b'2' is not a number"),
    parquet("score", ["2", "1_0"], ":2: score '1_0' is not a number"),
    parquet("score", [True, False], ":1: score True is not a number"),
    Attack(
        "list that is no UTF-8",
        EVAL,
        text(LIST, b"q1 Q0 d2 1 9 a\nq1 Q0 d\xff 2 8 a\n"),
        says=(f"{LIST}:2: not UTF-8 text (byte 8 of the line)",),
    ),
    other_list("a.jsonl", b'{}\n{"query": "\xff"}\n', ":2: not UTF-8 text (byte 12"),
    other_list("a.csv", b"query,document,score\nq1,d\xc3,1\n", ":2: not UTF-8 text (byte 5"),
]


@pytest.mark.parametrize("case", ATTACKS, ids=str)
def test_refused_with_its_line(case: Attack, tmp_path: Path) -> None:
    run_attack(case, tiny.make(tmp_path))


#: A format, and what its file holds for one score of the document d1, and 1.5 for d2.
FORMATS: dict[str, Callable[[str], bytes]] = {
    "a.trec": lambda score: f"q Q0 d1 1 {score} t\nq Q0 d2 2 1.5 t\n".encode(),
    "a.csv": lambda score: f"query,document,score\nq,d1,{score}\nq,d2,1.5\n".encode(),
    "a.jsonl": lambda score: "".join(
        json.dumps({"query": "q", "document": document, "score": text}) + "\n"
        for document, text in (("d1", score), ("d2", "1.5"))
    ).encode(),
    "a.json": lambda score: json.dumps({"q": {"d1": score, "d2": "1.5"}}).encode(),
    "a.parquet": lambda score: write_parquet(
        {"query": ["q", "q"], "document": ["d1", "d2"], "score": [score, "1.5"]}
    ),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("readers", [fast_readers, only_plain_readers])
@pytest.mark.parametrize(
    "score",
    [
        "18446744073709551616",
        "36893488147419103232",
        "1.8446744073709551616",
        "3.6893488147419103232",
        "-9.2233720368547758080",
    ],
)
def test_twenty_digits_are_no_zero(
    score: str, readers: Callable[[], Any], name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(FORMATS[name](score))
    with readers():
        assert load_run(path).to_dict()["q"] == {"d1": float(score), "d2": 1.5}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("readers", [fast_readers, only_plain_readers])
@pytest.mark.parametrize("score", ["1_000", "１２", "٣", "0x10", "infinity", "1e", "true", "1,5"])
def test_other_spellings_are_no_scores(
    score: str, readers: Callable[[], Any], name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(FORMATS[name](score).replace(b"1,5", b'"1,5"' if name == "a.csv" else b"1,5"))
    with readers(), pytest.raises(DataError, match=r"not a (finite )?number") as caught:
        load_run(path)
    assert str(caught.value).startswith(f"{path}:")


@pytest.mark.parametrize("readers", [fast_readers, only_plain_readers])
@pytest.mark.parametrize("grade", ["18446744073709551616", "9007199254740993", "1_0", "１", "1e0"])
def test_a_grade_is_whole_and_below_2_to_the_53(
    grade: str, readers: Callable[[], Any], tmp_path: Path
) -> None:
    path = tmp_path / "q.txt"
    path.write_text(f"q1 0 d1 1\nq1 0 d2 {grade}\n", encoding="utf-8")
    with readers(), pytest.raises(DataError, match=rf"q\.txt:2: grade '{grade}' is "):
        load_qrels(path)

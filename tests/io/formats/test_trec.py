"""TREC files: columns between blanks."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import FileLayout
from tests.io.files import written

RUN = "q1 Q0 d2 1 0.9 tag\nq1 Q0 d1 2 0.5 tag\nq2 Q0 d3 1 7 tag\n"
FOUND = {"q1": {"d2": 0.9, "d1": 0.5}, "q2": {"d3": 7.0}}
QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 -1\n"
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": -1}}


SPELLINGS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda text: text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "two gzip members": lambda text: gzip.compress(text[:20].encode())
    + gzip.compress(text[20:].encode()),
    "tabs": lambda text: text.replace(" ", "\t").encode(),
    "repeated blanks": lambda text: text.replace(" ", " \t  ").encode(),
    "blanks at both ends": lambda text: text.replace("\n", "  \n ").encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
    "blank lines": lambda text: ("\n \n" + text.replace("\n", "\n\n\t\n")).encode(),
}


@pytest.mark.parametrize("suffix", [".trec", ".txt", ".run", ".res", ".trec.gz", ".TXT.GZ"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_run_reads_the_same_in_every_spelling(spelling: str, suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"run{suffix}", SPELLINGS[spelling](RUN))
    run = load_run(path)
    assert run.to_dict() == FOUND
    assert run.ranks.tolist() == [1, 2, 1]
    assert run.name == "run"


@pytest.mark.parametrize("suffix", [".txt", ".qrels", ".test", ".qrels.gz"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_qrels_read_the_same_in_every_spelling(spelling: str, suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"qrels{suffix}", SPELLINGS[spelling](QRELS))
    assert load_qrels(path).to_dict() == GRADES


def test_an_error_counts_blank_lines_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", "\n\nq1 Q0 d1 1 0.5 t\n\nq1 Q0 d2 2 x t\n")
    with pytest.raises(DataError, match=r"a\.trec:5:.*'x'"):
        load_run(path)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_a_score_must_be_finite(number: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", f"q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 {number} t\n")
    with pytest.raises(DataError, match=r"a\.trec:2: score -?(nan|inf) "):
        load_run(path)


@pytest.mark.parametrize("columns", ["q1 Q0 d1 1 0.5", "q1 Q0 d1 1 0.5 7 extra", "q1"])
def test_columns_are_counted(columns: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", f"q1 Q0 d0 1 0.6 t\n{columns}\n")
    with pytest.raises(DataError, match=rf"a\.trec:2: {len(columns.split())} columns?,"):
        load_run(path)


def test_scores_decide_and_not_the_rank_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", "q1 Q0 low 1 0.5 t\nq1 Q0 high 2 0.9 t\n")
    assert list(load_run(path).to_dict()["q1"]) == ["high", "low"]
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert list(by_column.to_dict()["q1"]) == ["low", "high"]


@pytest.mark.parametrize(
    ("column", "ranks"), [([0, 1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, 3]), ([1, 5, 9], [1, 5, 9])]
)
def test_ranks_of_the_column_start_at_0_or_1_and_may_have_gaps(
    column: list[int], ranks: list[int], tmp_path: Path
) -> None:
    rows = (f"q1 Q0 d{rank} {rank} {9 - rank} t\n" for rank in column)
    path = written(tmp_path / "a.trec", "".join(rows))
    assert load_run(path, read_options=ReadOptions(rank_from="column")).ranks.tolist() == ranks


@pytest.mark.parametrize(
    ("rank", "problem"),
    [
        ("1", "rank 1 is given"),
        ("-1", "rank -1 is negative"),
    ],
)
def test_ranks_that_cannot_be(rank: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", f"q1 Q0 d1 1 9 t\nq1 Q0 d2 {rank} 8 t\n")
    with pytest.raises(DataError) as caught:
        load_run(path, read_options=ReadOptions(rank_from="column"))
    assert str(caught.value).startswith(f"{path}:2: {problem}")
    assert load_run(path).ranks.tolist() == [1, 2]  # nobody asked for the column


def test_a_duplicate_is_an_error_or_keeps_its_best_rank(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", "q1 Q0 d 1 3 t\nq1 Q0 e 2 2 t\nq1 Q0 e 3 4 t\n")
    with pytest.raises(DataError, match=r"a\.trec:3:.*'q1':.*on_duplicate:.*best_rank"):
        load_run(path)
    run = load_run(path, read_options=ReadOptions(on_duplicate="best_rank"))
    assert run.to_dict() == {"q1": {"e": 4.0, "d": 3.0}}
    assert run.duplicates == 1


@pytest.mark.parametrize("grade", ["1.5", "one", "1e0", "1.0.0", ""])
def test_a_grade_is_a_whole_number(grade: str, tmp_path: Path) -> None:
    path = written(tmp_path / "q.txt", f"q1 0 d1 1\nq1 0 d2 {grade or 'x'}\n")
    with pytest.raises(DataError, match=r"q\.txt:2: grade '.*whole"):
        load_qrels(path)


def test_grades_and_paths_that_no_file_can_have(tmp_path: Path) -> None:
    path = written(tmp_path / "q.txt", f"q1 0 d1 {10**30}\n")
    with pytest.raises(FusionBenchError, match=r"q\.txt:1: grade"):
        load_qrels(path)
    with pytest.raises(DataError, match=r"be read: .*(name|null)"):
        load_run(tmp_path / f"{'x' * 5000}.trec")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (gzip.compress(RUN.encode())[:-9], "damaged gzip file"),
        (gzip.compress(RUN.encode())[:5] + b"x" * 40, "damaged gzip file"),
        (b"\x1f\x8b\x08", "damaged gzip file"),
        (gzip.compress(b"\xff\xff"), "not UTF-8 text"),
        (b"q1 Q0 d\xe9 1 2 t\n", "UTF-8 text .byte 8"),
        (b"", "file is empty"),
        (gzip.compress(b"\n"), "file is empty"),
    ],
    ids=["cut", "spoilt", "header", "zipped bytes", "bytes", "empty", "zipped blank"],
)
def test_what_is_no_text_is_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", content)
    with pytest.raises(DataError, match=problem) as caught:
        load_run(path)
    assert str(caught.value).startswith(f"{path}:")


@pytest.mark.parametrize("name", ["a.trec", "a.jsonl", "a.csv", "a.parquet"])
def test_a_missing_file_and_a_folder_are_told_apart(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_run(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match="a folder"):
        load_qrels(tmp_path / name)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FusionBenchError, match=r"'.tsvx';.*'.tsv'.*known"):
        load_run(written(tmp_path / "a.tsvx", "q;d;0.5\n"))
    with pytest.raises(FusionBenchError, match="unknown file suffix ''"):
        load_run(written(tmp_path / "run", ""))


def test_a_missing_file_without_a_suffix_is_missing(tmp_path: Path) -> None:
    for name in ("run", "x" * 5000):
        with pytest.raises(DataError, match=r"no such file|be read"):
            load_run(tmp_path / name)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("bm25.trec", "bm25"),
        ("bm25.v1.trec.gz", "bm25.v1"),
        ("bm25.v2.trec", "bm25.v2"),
        ("run.TXT", "run"),
    ],
)
def test_a_run_is_named_as_its_file_without_suffixes(file: str, name: str, tmp_path: Path) -> None:
    assert load_run(written(tmp_path / file, RUN)).name == name
    assert load_run(tmp_path / file, name="other").name == "other"


@pytest.mark.parametrize("file", ["run", "input.bm25", "run.gz", "input.uogTr.2021"])
def test_a_file_without_a_known_suffix_is_trec_if_it_looks_like_it(
    file: str, tmp_path: Path
) -> None:
    data = gzip.compress(RUN.encode()) if file.endswith(".gz") else RUN
    path = written(tmp_path / file, data)
    assert load_run(path).to_dict() == FOUND
    assert load_run(path).name == file.removesuffix(".gz")
    assert load_qrels(written(tmp_path / file, QRELS)).to_dict() == GRADES


@pytest.mark.parametrize("content", [QRELS, RUN.replace("0.9", "x"), "{}\n", "a b c d e f\n"])
def test_a_file_that_does_not_look_like_trec_needs_its_format(content: str, tmp_path: Path) -> None:
    path = written(tmp_path / "run", content)
    with pytest.raises(FusionBenchError, match=r"''.*'format: NAME'"):
        load_run(path)
    with pytest.raises(DataError, match=r"run:\d: "):
        load_run(path, layout=FileLayout(format="trec"))


def test_trec_files_have_no_names_of_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a.trec", RUN)
    with pytest.raises(DataError, match=r"a\.trec: 'columns'.*TREC"):
        load_run(path, layout=FileLayout(columns={"query": "q"}))


@pytest.mark.parametrize(("grade", "whole"), [("2.0", 2), ("-1.0", -1), ("3.", 3), ("+1.00", 1)])
def test_a_whole_number_with_a_point_is_a_grade(grade: str, whole: int, tmp_path: Path) -> None:
    path = written(tmp_path / "q.txt", f"q1 0 d1 {grade}\n")
    assert load_qrels(path).to_dict() == {"q1": {"d1": whole}}


@pytest.mark.parametrize("name", ["a.trec", "a", "a.bm25"])
@pytest.mark.parametrize(
    "text",
    [
        "# BM25, k1 0.9\n" + RUN,
        "#\n#comment\n" + RUN.replace("\n", "\n# q1 Q0 d9 3 0.1 tag\n"),
        "  # an indented comment\n\n" + RUN,
        RUN.replace("tag", "my tag"),
        RUN.replace("tag", "BM25 (k1 = 0.9)"),
        RUN.replace(" ", "\t").replace("tag", "my first tag"),
    ],
    ids=["first", "between", "indented", "tag", "long tag", "tabs"],
)
def test_the_same_run(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert load_run(path).to_dict() == FOUND


def test_comments_in_qrels(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("# graded by two people\nq1 0 d1 1\n# q1 0 d2 1\n", encoding="utf-8")
    assert load_qrels(path).to_dict() == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 d1 1 0.9 t\n#q1 Q0 d2 2 0.5 t\n", ":2: starts with '#'"),
        ("#q1 Q0 d1 1 0.9 t\n", ":1: starts with '#'"),
        ("q1 Q0 d1 1 0.9 t\n#q1 Q0 d2 2 0.5 my tag\n", ":2: starts with '#'"),
        ("q1 Q0 d1 1 0.9 t\nq1 Q0 d 2 2 0.5 t\n", ":2: 7 columns"),
        ("q1 Q0 d1 1 0.9 t\nq 1 Q0 d2 2 0.5 t\n", ":2: 7 columns"),
        ("q1 Q0 d1 1 0.9 t\nq1 Q0 a b 2 0.5 t\n", ":2: 7 columns"),
        ("# only a comment\n", "file is empty"),
    ],
)
def test_what_could_be_read_two_ways_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        load_run(path)
    assert message in str(error.value)


RUN_OF_MSMARCO = "1\t700\t1\n1\t900\t2\n2\t5\t2\n2\t700\t1\n"
FOUND_OF_MSMARCO = {"1": {"700": 2.0, "900": 1.0}, "2": {"700": 2.0, "5": 1.0}}


@pytest.mark.parametrize("name", ["run.tsv", "run.trec", "run.txt", "run", "run.dev.small"])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_a_run_of_three_columns(name: str, separator: str, tmp_path: Path) -> None:
    if name.endswith(".tsv") and separator == " ":
        name = "run.msmarco"
    path = written(tmp_path / name, RUN_OF_MSMARCO.replace("\t", separator))
    assert load_run(path).to_dict() == FOUND_OF_MSMARCO
    assert load_run(path, layout=FileLayout(format="msmarco")).to_dict() == FOUND_OF_MSMARCO
    by_column = load_run(path, read_options=ReadOptions(rank_from="column"))
    assert by_column.ranks.tolist() == [1, 2, 1, 2]


def test_its_qrels_are_those_of_trec(tmp_path: Path) -> None:
    path = written(tmp_path / "qrels.dev.small.tsv", "1\t0\t700\t1\n")
    assert load_qrels(path).to_dict() == {"1": {"700": 1}}
    assert load_qrels(path, layout=FileLayout(format="msmarco")).to_dict() == {"1": {"700": 1}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("1 700 x\n", ":1: the third column"),
        ("1 700 1\n1 900\n", ":2: 2 columns, .* 3"),
        ("1 700 1\n1 Q0 900 2 0.5 t\n", ":2: 6 columns, .* 3"),
        ("1 700 1\n1 700 2\n", ":2: document '700'"),
    ],
)
def test_what_is_no_run_of_ranks(content: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"run\.txt{problem}"):
        load_run(written(tmp_path / "run.txt", content))


@pytest.mark.parametrize("rank", ["1", "0"])
@pytest.mark.parametrize("rising", [False, True])
def test_points_beside_a_rank_column_of_one_number_are_scores(
    tmp_path: Path, rank: str, *, rising: bool
) -> None:
    points = (1, 2, 3) if rising else (3, 2, 1)
    path = tmp_path / "a.trec"
    rows = (f"q{q} Q0 d{n} {rank} {n} t\n" for q in range(2) for n in points)
    path.write_text("".join(rows), encoding="utf-8")
    run = load_run(path)
    assert run.to_dict()["q0"] == {"d3": 3.0, "d2": 2.0, "d1": 1.0}

"""Rows of documents: values, ids, tables, frames."""

import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusion_bench.data import grouped_rows
from fusion_bench.data.grouped_rows import (
    IdVocabulary,
    count_by_query,
    count_within_queries,
    encode_arrow,
    encode_ids,
    find_repeats,
    group_rows,
    hash_table,
    number_by_appearance,
    query_of_rows,
    query_slices,
    refuse_duplicates,
    refuse_ragged,
    to_offsets,
    unite_vocabularies,
)
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import GREATEST, ReadOptions, parse_scores, parse_whole_numbers
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError
from fusion_bench.io.load_records import load_qrels, load_run


@pytest.mark.parametrize(
    "values",
    [
        ["1.5", "-2", "3e2"],
        [1.5, "-2", 300],
        [Decimal("1.5"), np.float32(-2), np.int16(300)],
        (1.5, -2, 300),
        np.array([1.5, -2, 300], dtype=np.float16),
        np.array(["1.5", "-2", "3e2"]),
        np.array([1.5, "-2", 300], dtype=object),
    ],
)
def test_scores(values: object) -> None:
    parsed = parse_scores(values)
    assert parsed.tolist() == [1.5, -2.0, 300.0]
    assert parsed.dtype == np.float64


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("1_0", "score '1_0' is "),
        ("１", "score '１' is "),
        (" 1", "score ' 1' is "),
        ("1,5", "score '1,5' is "),
        ("high", "score 'high'"),
        ("x" * 500, f"score '{'x' * 59}… is not a number"),
        ("nan", "score nan"),
        ("1e999", "score inf"),
        (10**400, f"score 1{'0' * 59}… is not"),
        (float("-inf"), "score -inf"),
        (Decimal("NaN"), "score nan"),
        (True, "score True"),
        (np.True_, "score np.True_"),
        (b"1", "score b'1'"),
        (None, "score None"),
        ([1], "score [1]"),
        (1j, "score 1j"),
    ],
)
def test_the_first_that_is_no_score_is_named(value: object, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_scores([1.0, "2", value, "x"])
    assert str(caught.value).startswith(problem)
    assert caught.value.row == 2


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_an_array_is_checked_as_well(kind: type[np.generic]) -> None:
    with pytest.raises(DataError, match="score nan") as caught:
        parse_scores(np.array([1, np.nan, np.inf], dtype=kind))
    assert caught.value.row == 1
    with pytest.raises(DataError, match="is not a number"):
        parse_scores(np.array([True, False]))


@pytest.mark.parametrize(
    "values",
    [
        ["1", "-2.0", "+3."],
        [1, -2.0, np.uint8(3)],
        [Decimal(1), np.float32(-2), "3"],
        np.array([1, -2, 3], dtype=np.int8),
        np.array([1.0, -2.0, 3.0]),
    ],
)
def test_whole_numbers(values: object) -> None:
    parsed = parse_whole_numbers(values, "grade")
    assert parsed.tolist() == [1, -2, 3]
    assert parsed.dtype == np.int64


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.5],
        ["1", "1.5"],
        ["1", "1e0"],
        [1, float("nan")],
        [1, float("inf")],
        [1, True],
        [1, None],
        [1, b"1"],
        [1, Decimal("1.5")],
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
    ],
)
def test_what_is_not_whole_is_named(values: object) -> None:
    with pytest.raises(DataError, match=r"rank .* whole") as caught:
        parse_whole_numbers(values, "rank")
    assert caught.value.row == 1


@pytest.mark.parametrize(
    "value", [GREATEST + 1, -GREATEST - 1, str(GREATEST + 1), 10**400, "9" * 999, 1e300]
)
def test_beyond_2_to_the_53_a_float_could_not_hold_it(value: object) -> None:
    with pytest.raises(DataError, match=r"grade .* is beyond ±2\^53") as caught:
        parse_whole_numbers([GREATEST, value], "grade")
    assert caught.value.row == 1
    assert parse_whole_numbers([GREATEST, -GREATEST], "grade").tolist() == [GREATEST, -GREATEST]


@pytest.mark.parametrize("kind", [np.uint64, np.float64])
def test_an_array_may_hold_more_than_2_to_the_53(kind: type[np.generic]) -> None:
    with pytest.raises(DataError, match=r"grade .* is beyond ±2\^53"):
        parse_whole_numbers(np.array([1, 2**63], dtype=kind), "grade")


LETTERS = st.sampled_from(["ab", "aé文🙂", "0123456789", "ab\0"])
NAMES = st.builds(
    lambda prefix, names: [prefix + name for name in names],
    st.text("x/", max_size=20),
    LETTERS.flatmap(lambda letters: st.lists(st.text(letters, max_size=30), min_size=1)),
)


@given(NAMES, st.booleans())
@example(["doc_12", "doc_1", "doc_0001234", "doc_12"], True)  # seven bytes behind "doc_"
@example(["", "ab", "ab\0", "a"], True)
def test_a_column_reads_back(names: list[str], by_arrow: bool) -> None:
    names = [f"{name}." for name in names]
    column = encode_arrow([pa.array(names, pa.large_string())]) if by_arrow else encode_ids(names)
    vocabulary = column.vocabulary
    assert [vocabulary[int(code)] for code in column.codes] == names
    assert vocabulary.decode(column.codes) == tuple(names)
    assert list(vocabulary) == sorted(set(names), key=str.encode)


@given(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from(["shared", "few", "many"]))
def test_vocabularies_are_united(lists: list[list[str]], how: str) -> None:
    parts = [encode_ids(names).vocabulary for names in lists]
    if how == "shared":  # parts of one table
        whole = encode_ids([name for names in lists for name in names]).vocabulary
        parts = [
            IdVocabulary(whole.data, whole.limits, np.array([whole.index(name) for name in part]))
            for part in parts
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_rows, "MANY_IDS", 0 if how == "many" else 1000)
        union, codes = unite_vocabularies(parts)
    assert list(union) == sorted({name for names in lists for name in names})
    for part, code in zip(parts, codes, strict=True):
        assert [union[int(n)] for n in code] == list(part)


def test_ids_are_texts_of_which_unused_ones_are_dropped() -> None:
    column = encode_ids(["c", "a", "b"])
    part = type(column)(np.array([2, 0, 2]), column.vocabulary)
    assert tuple(encode_ids(part).vocabulary) == ("a", "c")
    assert encode_ids(part).codes.tolist() == [1, 0, 1]
    assert encode_ids(column) is column
    column = encode_ids([10, np.int64(9), 10])  # type: ignore[list-item] # as data frames have them
    assert list(column.vocabulary) == ["10", "9"]
    assert column.codes.tolist() == [0, 1, 0]
    vocabulary = encode_ids(["b", "é", "a"]).vocabulary
    assert (vocabulary.index("b"), "é" in vocabulary, "x" in vocabulary) == (1, True, False)
    assert (vocabulary[-1], len(vocabulary)) == ("é", 3)
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.limits[0] = 1


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, "1"], "'1' is given both"),
        ([1.0, 2.0], "neither text nor"),
        (["a", None], "id None"),
        ([True], "id True"),
    ],
)
def test_other_ids_are_refused(ids: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode_ids(ids)


RUN = Run.from_dict("b m", {"q1": {"d2": 9.0, "d1": 7.5, "d3": 7.5}, "q2": {"d<3": 1.0}})
QRELS = Qrels.from_dict({"q1": {"d1": 2, "d2": 0}})


def test_a_cell_shows_one_line_and_the_first_rows() -> None:
    large = Run.from_dict("a", {f"q{i}": {"d": 1.0} for i in range(1000)})
    for table in (RUN, QRELS, large):
        assert len(repr(table).splitlines()) == 1
        assert len(table._repr_html_()) < 2000
    assert repr(RUN) == "Run('b m', 2 queries, 4 documents)"
    assert "d&lt;3" in RUN._repr_html_()
    assert "…" in large._repr_html_()


def test_data_frames_and_trec_files_read_back(tmp_path: Path) -> None:
    frame = RUN.to_pandas()
    assert frame.columns.tolist() == ["query", "document", "rank", "score"]
    assert frame.iloc[1].tolist() == ["q1", "d3", 2, 7.5]
    assert QRELS.to_pandas()["grade"].tolist() == [2, 0]
    assert Run.from_pandas(frame, name="b m").to_dict() == RUN.to_dict()
    path = tmp_path / "run.trec"
    assert RUN.to_trec(path).splitlines()[0] == "q1 Q0 d2 1 9.0 b_m"
    assert load_run(path).to_dict() == RUN.to_dict()
    QRELS.to_trec(tmp_path / "qrels.txt")
    assert load_qrels(tmp_path / "qrels.txt").to_dict() == QRELS.to_dict()
    by_rank = ReadOptions(rank_from="column")
    rows = (["q", "q", "p"], ["d1", "d2", "d1"], [0.5, 0.9, 0.3])
    run = Run.from_rows("a", *rows, ranks=[1, 2, 1], read_options=by_rank)
    run.to_trec(tmp_path / "run.trec")
    assert list(load_run(tmp_path / "run.trec").to_dict()["q"]) == ["d1", "d2"]
    with pytest.raises(DataError, match="white space"):
        Run.from_dict({"q 1": {"d": 1.0}}).to_trec()


SCORES = {"q1": {"d2": 9.0, "d1": 7.5}, "q2": {"d3": 1.0}}
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}
ROWS = [("q1", "d2", 9.0), ("q1", "d1", 7.5), ("q2", "d3", 1.0)]
COLUMNS = {"qid": ["q1", "q1", "q2"], "docno": ["d2", "d1", "d3"], "score": [9.0, 7.5, 1.0]}

Scored = namedtuple("Scored", ["query_id", "doc_id", "score"])


@dataclass
class Hit:
    query: str
    document: str
    value: float


class Collection:
    def qrels_iter(self) -> Iterator[ir_measures.Qrel]:
        return (ir_measures.Qrel(q, d, g) for q, docs in GRADES.items() for d, g in docs.items())

    def scoreddocs_iter(self) -> Iterator[Scored]:
        return (Scored(*row) for row in ROWS)


class RanxLike:
    name = "bm25"

    def to_dict(self) -> dict[str, dict[str, float]]:
        return SCORES


RUNS: dict[str, Any] = {
    "nested": SCORES,
    "pairs": {"q1": [("d2", 9.0), ["d1", 7.5]], "q2": (("d3", 1),)},
    "hits": {"q1": [{"docid": "d2", "score": 9}, {"docid": "d1", "score": 7.5}], "q2": {"d3": 1}},
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
    "ranx": RanxLike(),
    "named tuples": [Scored(*row) for row in ROWS],
    "generator": (Scored(*row) for row in ROWS),
    "dataclasses": [Hit(*row) for row in ROWS],
    "triples": ROWS,
    "mappings": [dict(zip(COLUMNS, row, strict=True)) for row in ROWS],
    "ir_measures": [ir_measures.ScoredDoc(*row) for row in ROWS],
    "ir_datasets": Collection(),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_of_any_kind(kind: str) -> None:
    assert Run.from_dict("bm25", RUNS[kind]).to_dict() == SCORES


@pytest.mark.parametrize(
    "given",
    [
        GRADES,
        {"q1": [("d1", 2), ("d2", 0.0)], "q2": ["d3"]},
        {"q1": {"d1": np.int64(2), "d2": 0}, "q2": {"d3"}},
        pd.DataFrame(
            {"query": ["q1", "q1", "q2"], "doc": ["d1", "d2", "d3"], "label": [2.0, 0, 1]}
        ),
        pl.DataFrame({"topic": ["q1", "q1", "q2"], "doc": ["d1", "d2", "d3"], "rel": [2, 0, 1]}),
        Collection(),
        Collection().qrels_iter(),
    ],
)
def test_judgments_of_any_kind(given: object) -> None:
    assert Qrels.from_dict(given).to_dict() == GRADES


def test_lists_of_ids_and_whole_numbers_become_runs() -> None:
    run = Run.from_dict({"q1": ["d9", "d1", "d5"]})
    assert run.to_dict() == {"q1": {"d9": 3.0, "d1": 2.0, "d5": 1.0}}
    frame = pd.DataFrame({"qid": [7, 7], "docno": [10, 9], "score": [0.5, 0.6]})
    assert Run.from_pandas(frame).to_dict() == {"7": {"9": 0.6, "10": 0.5}}
    assert Qrels.from_dict({7: {10: 1}}).to_dict() == {"7": {"10": 1}}


def test_the_name_is_given_or_its_own_or_run() -> None:
    assert Run.from_dict("a", SCORES).name == "a"
    assert Run.from_dict(SCORES, name="a").name == "a"
    assert Run.from_dict(RanxLike()).name == "bm25"
    assert Run.from_pandas(pd.DataFrame(COLUMNS), name="a").name == "a"
    assert Run.from_dict(pd.DataFrame(COLUMNS)).name == "run"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "run from int"),
        ("bm25.trec", "run from str"),
        ([1, 2], "run from list"),
        ({}, "at least one"),
        ([], "at least one"),
        (pd.DataFrame(COLUMNS).rename(columns={"docno": "url"}), "no column"),
        (pd.DataFrame(COLUMNS).set_index("qid"), r"'qid' is its index"),
        (pd.DataFrame([["q", "d", 1, 2]], columns=["qid", "doc", "score", "score"]), "two columns"),
        (pl.DataFrame(COLUMNS).lazy(), r"call its collect"),
        ({"q1": "d1"}, "query 'q1': given 'd1': give"),
        ({"q1": {"d1", "d2"}}, "which has no"),
        ({"q1": [("d1", 2.0, 3)]}, r"document, score. pair"),
        ({"q1": {"d1": "high"}}, "score 'high'"),
        ({"q1": {"d1": {"score": 1}}}, "is not a number"),
        ({"q1": {"d1": None}}, "'d1': score None"),
        ({"q1": {"d1": float("inf")}}, "score inf"),
        ({"q1": {1: 2.0, "1": 3.0}}, "'1' is given"),
        ([("q1", None, 1.0)], "id None"),
        ([("q1", ["d"], 1.0)], "unhashable"),
        ([("q1", "d1", 1.0), ("q1", "d1", 2.0)], "appears twice"),
    ],
)
def test_what_is_no_run_says_what_to_do(given: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Run.from_dict("a", given)


@pytest.mark.parametrize(
    ("grade", "message"),
    [(2.5, "grade 2.5"), (float("nan"), "grade nan"), ("a", "grade 'a'")],
)
def test_grades_are_whole_numbers(grade: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Qrels.from_dict({"q1": {"d1": grade}})


def test_no_other_package_is_imported() -> None:
    code = (
        "import sys; from fusion_bench.data.run import Run; Run.from_dict({'q': {'d': 1}});"
        "print(*{'pandas', 'polars', 'ranx', 'ir_measures', 'ir_datasets'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == []


def test_group_keeps_the_order_of_queries_and_sorts_ids_by_bytes() -> None:
    grouped = group_rows(["b", "a", "b"], ["x", "é", "D"], "row")
    assert grouped.queries == ("b", "a")
    assert grouped.offsets.tolist() == [0, 2, 3]
    assert [grouped.original_row(n) for n in range(3)] == [0, 2, 1]
    assert tuple(grouped.vocabulary) == ("D", "x", "é")
    assert grouped.documents.tolist() == [1, 0, 2]
    names = ["z", "é", "𝒳", "日", "Z", "a10", "a9", "\uffee"]
    found = group_rows(["q"] * len(names), names, "row").vocabulary
    assert list(found) == sorted(names, key=str.encode)


def test_group_refuses_nothing_empty_ids_and_duplicates() -> None:
    with pytest.raises(DataError, match="no judgement in"):
        group_rows([], [], "judgement")
    with pytest.raises(DataError, match="empty query id") as caught:
        group_rows(["q", ""], ["a", "b"], "row")
    assert caught.value.row == 1
    with pytest.raises(DataError, match="empty document id") as caught:
        group_rows(["q", "q", "q"], ["a", "b", ""], "row")
    assert caught.value.row == 2
    with pytest.raises(DataError, match="holds NUL") as caught:
        group_rows(["q", "q", "q"], ["a", "b\0", "c"], "row")
    assert caught.value.row == 1
    grouped = group_rows(["q", "r", "q", "q"], ["a", "a", "b", "a"], "row")
    assert find_repeats(grouped, np.arange(4)).tolist() == [False, False, True, False]
    assert find_repeats(grouped, np.array([2, 1, 0, 3])).tolist() == [False, False, True, False]
    with pytest.raises(DataError, match="'a' appears twice") as caught:
        refuse_duplicates(grouped, "keep one row")
    assert caught.value.row == 3
    refuse_duplicates(group_rows(["q", "r"], ["a", "a"], "row"), "keep one row")


def test_columns_are_equally_long_and_numbered_by_query() -> None:
    refuse_ragged(queries=[1, 2], ranks=None, scores=[1, 2])
    with pytest.raises(DataError, match="2 queries, 3 scores"):
        refuse_ragged(queries=[1, 2], scores=[1, 2, 3])
    codes, names = number_by_appearance(["b", "a", "b"])
    assert (codes.tolist(), names) == ([0, 1, 0], ("b", "a"))
    offsets = to_offsets(np.array([2, 0, 1]))
    assert offsets.tolist() == [0, 2, 2, 3]
    assert query_of_rows(offsets).tolist() == [0, 0, 2]
    assert count_within_queries(offsets).tolist() == [1, 2, 1]
    assert count_by_query(np.array([True, False, True]), offsets).tolist() == [1, 0, 1]
    assert list(query_slices(("a", "b", "c"), offsets)) == [
        ("a", slice(0, 2)),
        ("b", slice(2, 2)),
        ("c", slice(2, 3)),
    ]


def names(*ids: str) -> IdVocabulary:
    return encode_ids(ids).vocabulary


def test_digest_sees_contents_and_not_the_order_of_queries() -> None:
    offsets, swapped = np.array([0, 2, 3]), np.array([0, 1, 3])
    values, moved = np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])
    base = hash_table(("a", "b"), offsets, values, names("x", "y"))
    assert hash_table(("b", "a"), swapped, moved, names("x", "y")) == base
    others = [
        hash_table(("a", "c"), offsets, values, names("x", "y")),
        hash_table(("a", "b"), swapped, values, names("x", "y")),
        hash_table(("a", "b"), offsets, values + 1, names("x", "y")),
        hash_table(("a", "b"), offsets, values.astype(np.int64), names("x", "y")),
        hash_table(("a", "b"), offsets, values, names("x", "z")),
    ]
    assert len({base, *others}) == 6
    assert len(base) == 64

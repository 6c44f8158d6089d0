"""What speaks against the lists that were read."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.checks.collection_warnings import find_list_warnings
from fusion_bench.checks.lists import (
    BothOrders,
    RerankListCheck,
    check_rerank_list,
    compare_rank_column,
    count_changed_by_float32,
    count_constant_lists,
    describe_problems,
    lowest_score,
    measure_both_orders,
)
from fusion_bench.checks.records import DataWarning, ListInfo
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, FileLayout
from tests.parity.data import parity_data

JUDGED = {"q1", "q2"}


@pytest.mark.parametrize(
    ("ranked", "count"),
    [
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "b": 0.0, "c": 0.0}}, 2),
        ({"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 0.0, "b": 0.0, "c": 1.0}}, 1),
        ({"q1": {"a": 1.0}, "q2": {"a": 1.0}}, 0),
        ({"q1": {"a": 1.0}, "q9": {"a": 1.0, "b": 1.0}}, 0),
    ],
)
def test_constant_lists(ranked: dict[str, dict[str, float]], count: int) -> None:
    assert count_constant_lists(Run.from_dict("a", ranked), JUDGED) == count


scores = st.lists(
    st.sampled_from([1.0, 1.0 + 1e-9, 1.0 + 2e-9, 1.0 + 1e-6, 2.0, 1e300]), min_size=1, max_size=6
)


@given(scores, scores)
def test_float32_changes_what_sorting_as_trec_eval_does_changes(
    first: list[float], second: list[float]
) -> None:
    lists = {"q1": first, "q2": second}
    ranked = {
        query: {f"d{n}": score for n, score in enumerate(values)} for query, values in lists.items()
    }
    expected = 0
    for documents in ranked.values():
        orders = []
        for kind in (np.float64, np.float32):
            with np.errstate(over="ignore"):
                keys = sorted((float(kind(score)), name) for name, score in documents.items())
            orders.append([name for _, name in keys])
        expected += orders[0] != orders[1]
    assert count_changed_by_float32(Run.from_dict("a", ranked), JUDGED) == expected


def test_a_rank_column_changes_neither_float32_nor_the_lowest_score() -> None:
    run = Run.from_rows(
        "a",
        ["q1", "q1"],
        ["a", "b"],
        [1.0 + 1e-9, 1.0],
        ranks=[1, 2],
        read_options=ReadOptions(rank_from="column"),
    )
    assert count_changed_by_float32(run, JUDGED) == 0
    assert lowest_score(Run.from_dict("a", {"q1": {"a": 1.0, "b": -2.5}})) == -2.5


# ── rank columns that oppose the scores of a file


SAME = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 0.1 t\nq2 Q0 a 1 3 t\n"
OPPOSED = "q1 Q0 a 1 0.1 t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 0.4 t\nq1 Q0 d 4 0.9 t\n"

ZERO_BASED = "q1 Q0 a 0 0.1 t\nq1 Q0 b 1 0.5 t\nq1 Q0 c 2 0.7 t\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.trec", SAME, (1, 0)),
        ("a", "# a comment\n" + OPPOSED + SAME.replace("q1", "q3"), (2, 1)),
        ("a.trec", ZERO_BASED, (1, 1)),
        ("a.trec", "q1 Q0 a 0 0.1 t\nq1 Q0 b 0 0.5 t\n", (0, 0)),
        ("a.trec", "q1 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n", (0, 0)),
        ("a.csv", "query,document,rank,score\nq1,a,1,0.1\nq1,b,2,0.5\n", (1, 1)),
        ("a.csv", "query,document,score\nq1,a,0.1\nq1,b,0.5\n", None),
        ("a.trec", "q1 a 1\nq1 b 2\n", None),
        ("a.trec", "not a run\n", None),
        ("a.parquet", "PAR1", None),
    ],
)
def test_ranks_and_scores(
    name: str, text: str, expected: tuple[int, int] | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert compare_rank_column(path, DEFAULT_LAYOUT) == expected


def test_rank_columns_of_packed_large_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.bm25.gz"
    path.write_bytes(gzip.compress(OPPOSED.encode()))
    assert compare_rank_column(path, FileLayout("trec", {})) == (1, 1)
    path = tmp_path / "a.trec"
    path.write_text(SAME + "".join(f"x{n} Q0 a 1 0.1 t\n" for n in range(20_000)) + OPPOSED)
    assert compare_rank_column(path, DEFAULT_LAYOUT) == (1, 0)
    assert compare_rank_column(tmp_path, DEFAULT_LAYOUT) is None


# ── lists whose end is better than their beginning


MANY_QUERIES, MANY_DOCUMENTS = 30, 40
QRELS = Qrels.from_dict(
    {f"q{q}": {f"d{q % 7}": 1, f"d{q % 5 + 10}": 1} for q in range(MANY_QUERIES)}
)


def measured(sign: float, *, queries: int = MANY_QUERIES, noise: float = 0.0) -> BothOrders | None:
    rng = np.random.default_rng(1)
    ranked = {
        f"q{q}": {
            f"d{d}": sign * (d in (q % 7, q % 5 + 10)) + noise * float(rng.normal()) + 1e-6 * d
            for d in range(MANY_DOCUMENTS)
        }
        for q in range(queries)
    }
    runs = align(QRELS, [Run.from_dict("a", ranked)])
    return measure_both_orders(runs, runs.ranks[0])


@pytest.mark.parametrize(
    ("sign", "noise", "is_reversed"), [(1.0, 0.0, False), (-1.0, 0.3, True), (0.0, 1.0, False)]
)
def test_only_a_list_that_is_better_from_its_end_is_reversed(
    sign: float, noise: float, is_reversed: bool
) -> None:
    both = measured(sign, noise=noise)
    assert both is not None
    assert both.is_reversed is is_reversed


def test_both_means_of_enough_queries() -> None:
    good, bad = measured(1.0), measured(-1.0)
    assert good is not None
    assert bad is not None
    assert good.as_read == pytest.approx(1.0)
    assert bad.backwards == pytest.approx(1.0)
    assert (good.backwards, bad.as_read) == (0.0, 0.0)
    assert measured(-1.0, queries=4) is None
    assert measured(-1.0, queries=5) is not None


# ── looking at rerank lists: made ones, and the real ones that are known to be good or bad


QUERIES = [f"q{i}" for i in range(12)]
Scores = dict[str, dict[str, float]]
DOCUMENTS = [f"d{i}" for i in range(8)]


def made(
    *, flip: bool = False, shift: float = 0.0, scale: float = 1.0
) -> dict[str, dict[str, float]]:
    """The relevant document d0 first and the others below, or the other way round."""
    scores = {d: scale * (len(DOCUMENTS) - i) / 10 + shift for i, d in enumerate(DOCUMENTS)}
    if flip:
        scores = dict(zip(DOCUMENTS, reversed(scores.values()), strict=True))
    return {query: dict(scores) for query in QUERIES}


def looked_at(scores: Scores, space: ScoreSpace, source: Scores) -> RerankListCheck:
    qrels = Qrels.from_dict({query: {"d0": 1, "d1": 0} for query in QUERIES})
    run, rerank = Run.from_dict("first", source), Run.from_dict("list", scores)
    return check_rerank_list(rerank, space, align(qrels, [run], rerankers=[rerank]), {"first": run})


def test_lists_in_which_nothing_is_found() -> None:
    first = made(flip=True, shift=3, scale=5)
    found = looked_at(made(), "unit", first)
    assert list(describe_problems(found)) == []
    assert (found.low, found.high) == pytest.approx((0.1, 0.8))
    assert found.ndcg_difference["first"][0] > 0.5
    assert found.reused_run is None
    assert not found.is_bad
    assert not found.is_squeezed
    lonely = {query: {f"x{query}": 0.3} for query in QUERIES}
    found = looked_at(lonely, "unbounded", made())
    assert found.ndcg_difference == {}
    assert not found.is_bad
    assert list(describe_problems(found)) == []
    # A list that skips documents of the run: places are counted among those of both.
    thinned = {q: {d: s for d, s in docs.items() if d != "d1"} for q, docs in made().items()}
    found = looked_at(thinned, "unit", made(shift=5))
    assert found.ndcg_difference["first"][0] == 0


def test_scores_of_the_first_stage_dealt_out_again_and_constant_ones() -> None:
    found = looked_at(made(), "unbounded", made(flip=True))
    assert (found.reused_run, found.reused_share) == ("first", 1.0)
    (text,) = describe_problems(found)
    assert " of run 'first' " in text
    assert text.endswith("score_space: order")
    (text,) = describe_problems(looked_at(made(), "order", made(flip=True)))
    assert text.endswith("score_space: order says")
    constant = {query: dict.fromkeys(DOCUMENTS, 0.5) for query in QUERIES}
    found = looked_at(constant, "unbounded", constant)
    assert found.reused_run is None
    assert found.tied_at_top == 1
    assert any("the top in 100%" in text for text in describe_problems(found))


def test_a_reranker_that_is_worse_than_every_run_is_called_bad() -> None:
    rng = np.random.default_rng(1)
    noisy = {
        query: {d: s + 0.01 * rng.random() for d, s in documents.items()}
        for query, documents in made(flip=True).items()
    }
    noisy["q0"] = made()["q0"]  # equal on one query, so that the differences have a spread
    found = looked_at(noisy, "unit", made(shift=9))
    assert found.is_bad
    assert any("a bad reranker" in text for text in describe_problems(found))
    assert not looked_at(made(), "unit", made(shift=9)).is_bad


@pytest.mark.parametrize(
    ("shift", "scale", "squeezed", "twice"),
    [(0.0, 1.0, False, False), (0.49, 0.3, True, True), (0.0, 0.3, True, False)],
)
def test_a_squeezed_list(shift: float, scale: float, squeezed: bool, twice: bool) -> None:
    found = looked_at(made(shift=shift, scale=scale), "unit", made(flip=True, shift=5))
    assert (found.is_squeezed, found.is_sigmoid_twice) == (squeezed, twice)
    texts = " ".join(describe_problems(found))
    assert ("is squeezed" in texts) == squeezed
    assert ("sigmoid applied twice" in texts) == twice


@pytest.mark.parametrize(
    ("space", "top", "saturated"),
    [("unit", 1.0, True), ("logit", 40.0, True), ("logit", 9.0, False), ("unbounded", 40.0, False)],
)
def test_saturated_scores(space: ScoreSpace, top: float, saturated: bool) -> None:
    scores = made()
    for documents in scores.values():
        documents["d0"] = documents["d1"] = top
    found = looked_at(scores, space, made(shift=5))
    assert (found.saturated >= 0.05) == saturated
    assert any("of the scale" in text for text in describe_problems(found)) == saturated


# ── the real ones


def real(collection: str, name: str, space: ScoreSpace, sources: list[str]) -> RerankListCheck:
    folder: Path = parity_data(collection)
    runs = {s: load_run(folder / f"runs/{s}.trec.gz", name=s) for s in sources}
    rerank = load_run(folder / f"rerank/{name}.trec.gz", name=name)
    aligned = align(load_qrels(folder / "qrels.txt"), list(runs.values()), rerankers=[rerank])
    return check_rerank_list(rerank, space, aligned, runs)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("rankvicuna-on-splade", "splade"),
        ("rankvicuna-on-bm25", "bm25"),
        ("gpt35-on-bm25", "bm25"),
        ("vicuna13b-on-bm25", "bm25"),
    ],
)
def test_listwise_reranks_carry_their_first_stages_scores(name: str, first: str) -> None:
    found = real("trec-dl-2019", name, "unbounded", ["bm25", "splade", "tas-b"])
    assert (found.reused_run, found.reused_share) == (first, 1.0)
    assert f"those of run '{first}' dealt out again" in next(iter(describe_problems(found)))


@pytest.mark.parity
def test_a_bad_reranker_is_called_bad_and_a_squeezed_one_squeezed() -> None:
    sources = ["bm25"]
    bad = real("jqara", "bge-reranker-base", "logit", sources)
    assert bad.is_bad
    assert any("is a bad reranker" in text for text in describe_problems(bad))
    small = real("jqara", "japanese-reranker-cross-encoder-small-v1", "unit", sources)
    assert (small.is_bad, small.is_squeezed, small.is_sigmoid_twice) == (False, True, True)
    good = real("jqara", "bge-reranker-v2-m3", "unit", sources)
    assert list(describe_problems(good)) == []


# ── which lists get a note about their order


def warn(facts: Mapping[str, Any]) -> list[DataWarning]:
    info = ListInfo(
        name="a",
        kind="run",
        roles=(),
        read_options={},
        unanswered_queries=0,
        unjudged_queries=0,
        duplicate_rows=0,
        zero_scores=0,
        **facts,
    )
    return list(find_list_warnings(info, 0))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"mean_as_read": 0.06, "mean_backwards": 0.7, "is_reversed": True}, ["reversed"]),
        ({"mean_as_read": 0.06, "mean_backwards": 0.07}, []),
        ({"constant_lists": 1}, ["constant lists"]),
        ({"rank_column_lists": 4, "opposed_rank_lists": 3}, ["rank column"]),
        ({"rank_column_lists": 4, "opposed_rank_lists": 2}, []),
        ({"float32_queries": 1}, ["float32"]),
    ],
)
def test_notes(facts: dict[str, Any], expected: list[str]) -> None:
    assert [each.key for each in warn(facts)] == expected


@pytest.mark.parametrize(
    "facts",
    [
        {"mean_as_read": 0.06, "mean_backwards": 0.7, "is_reversed": True},
        {"rank_column_lists": 4, "opposed_rank_lists": 3},
    ],
)
def test_an_order_is_proposed_that_the_list_does_not_have(facts: dict[str, Any]) -> None:
    text = warn(facts)[-1].text
    assert "distances, write 'order: lower'" in text
    assert "--order a=lower" in text
    run = Run.from_dict("a", {"q": {"d": 1.0}}, read_options=ReadOptions(order="lower"))
    text = warn({**facts, "notes": run.notes})[-1].text
    assert "similarities, write 'order: higher'" in text

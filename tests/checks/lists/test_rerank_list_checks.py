"""Looking at rerank lists: made ones, and the real ones that are known to be good or bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.checks.lists import RerankListCheck, check_rerank_list, describe_problems
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.io.load_records import load_qrels, load_run
from tests.parity.data import parity_data

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


def test_a_plain_list_raises_no_word() -> None:
    first = made(flip=True, shift=3, scale=5)
    found = looked_at(made(), "unit", first)
    assert list(describe_problems(found)) == []
    assert (found.low, found.high) == pytest.approx((0.1, 0.8))
    assert found.ndcg_difference["first"][0] > 0.5
    assert found.reused_run is None
    assert not found.is_bad
    assert not found.is_squeezed


def test_scores_of_the_first_stage_dealt_out_again() -> None:
    found = looked_at(made(), "unbounded", made(flip=True))
    assert (found.reused_run, found.reused_share) == ("first", 1.0)
    (text,) = describe_problems(found)
    assert " of run 'first' dealt out again (100% " in text
    assert text.endswith("score_space: order")
    (text,) = describe_problems(looked_at(made(), "order", made(flip=True)))
    assert text.endswith("score_space: order says")


def test_a_constant_list_is_not_dealt_out() -> None:
    constant = {query: dict.fromkeys(DOCUMENTS, 0.5) for query in QUERIES}
    found = looked_at(constant, "unbounded", constant)
    assert found.reused_run is None
    assert found.tied_at_top == 1
    assert any("at the top in 100%" in text for text in describe_problems(found))


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
    assert any("end of the scale" in text for text in describe_problems(found)) == saturated


def test_probabilities_that_are_declared_logits() -> None:
    texts = list(describe_problems(looked_at(made(), "logit", made(shift=5))))
    assert any("score_space: unit" in text for text in texts)


def test_a_list_of_nothing_that_can_be_compared() -> None:
    lonely = {query: {f"x{query}": 0.3} for query in QUERIES}
    found = looked_at(lonely, "unbounded", made())
    assert found.ndcg_difference == {}
    assert not found.is_bad
    assert list(describe_problems(found)) == []


def test_ranks_with_gaps_are_placed_among_the_kept() -> None:
    """A list that skips documents of the run: places are counted among those of both."""
    thinned = {q: {d: s for d, s in docs.items() if d != "d1"} for q, docs in made().items()}
    found = looked_at(thinned, "unit", made(shift=5))
    assert found.ndcg_difference["first"][0] == 0


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

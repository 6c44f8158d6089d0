"""Published figures of real collections come out to the digits printed.

Each row names the figure, the systems that make it, and the tolerance: half a unit of the last
digit that was printed.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import pytest

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.parity.collections import COMPLETE
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity

#: CODEC's bm25-rm3 lists a few documents twice.
BEST = ReadOptions(on_duplicate="best_rank")
ORDER: dict[str, ScoreSpace] = {"rerank": "order"}
LOG_PROB: dict[str, ScoreSpace] = {"rerank": "log_prob"}
COMBINED = {"bge-m3+dense": 0.4, "bge-m3+sparse": 0.2, "bge-m3+colbert": 0.4}
MIN_MAX = {"method": "weighted_score", "missing": "zero", "normalize": "min_max"}
RAW_SUM = {"method": "weighted_score", "missing": "zero", "normalize": "none"}

#: collection, runs, rerank list, system, measure, published, digits, reading
Row = tuple[str, tuple[str, ...], str | None, dict[str, Any], str, float, int]


def alone(collection: str, run: str, measure: str, published: float, digits: int = 4) -> Row:
    return collection, (run,), None, {}, measure, published, digits


def rrf(collection: str, *runs: str, published: float) -> Row:
    return collection, runs, None, {"fusion": {"method": "rrf", "k": 60}}, "nDCG@10", published, 4


def reranked(
    collection: str, run: str, rerank: str, depth: int, measure: str, published: float, digits: int
) -> Row:
    blend = {"method": "replace", "reranker": "rerank", "depth": depth, "missing": "below"}
    return collection, (run,), rerank, {"blend": blend}, measure, published, digits


PUBLISHED: list[Row] = [
    alone("trec-dl-2019", "bm25", "nDCG@10", 0.5058),
    alone("trec-dl-2019", "bm25-rm3", "nDCG@10", 0.5216),
    alone("trec-dl-2019", "tas-b", "nDCG@10", 0.7210),
    alone("trec-dl-2019", "ada2", "nDCG@10", 0.7035),
    alone("trec-dl-2019", "splade", "nDCG@10", 0.7308),
    reranked("trec-dl-2019", "splade", "rankvicuna-on-splade", 100, "nDCG@10", 0.7459, 4),
    reranked("trec-dl-2019", "bm25", "rankvicuna-on-bm25", 100, "nDCG@10", 0.6682, 4),
    rrf("trec-dl-2019", "bm25", "tas-b", published=0.6930),
    rrf("trec-dl-2019", "splade", "tas-b", published=0.7377),
    alone("codec", "bm25", "AP", 0.213, 3),
    alone("codec", "bm25-rm3", "AP", 0.233, 3),
    alone("codec", "ance", "AP", 0.186, 3),
    alone("codec", "bm25", "nDCG@10", 0.322, 3),
    alone("codec", "bm25-rm3", "nDCG@10", 0.327, 3),
    alone("codec", "ance", "nDCG@10", 0.363, 3),
    reranked("codec", "bm25", "monot5-on-bm25", 1000, "AP", 0.340, 3),
    reranked("codec", "bm25", "monot5-on-bm25", 1000, "nDCG@10", 0.468, 3),
    reranked("codec", "bm25-rm3", "monot5-on-bm25-rm3", 1000, "AP", 0.346, 3),
    reranked("codec", "bm25-rm3", "monot5-on-bm25-rm3", 1000, "nDCG@10", 0.472, 3),
    reranked("codec", "ance", "monot5-on-ance", 1000, "AP", 0.316, 3),
    reranked("codec", "ance", "monot5-on-ance", 1000, "nDCG@10", 0.481, 3),
    rrf("codec", "bm25", "ance", published=0.4487),
    ("codec", ("bm25", "ance"), None, {"fusion": RAW_SUM}, "nDCG@10", 0.1555, 4),
    (
        "jqara",
        tuple(COMBINED),
        None,
        {"fusion": {**RAW_SUM, "weights": COMBINED}},
        "nDCG@10",
        0.5760,
        4,
    ),
    (
        "jqara",
        tuple(COMBINED),
        None,
        {"fusion": {**RAW_SUM, "weights": COMBINED}},
        "RR@10",
        0.8178,
        4,
    ),
    alone("jqara", "bm25", "nDCG@10", 0.4580),
    alone("nfcorpus", "minilm", "nDCG@10", 0.3159),
    alone("nfcorpus", "bm25", "nDCG@10", 0.3180),
    ("nfcorpus", ("bm25", "minilm"), None, {"fusion": MIN_MAX}, "nDCG@10", 0.3543, 4),
    rrf("nfcorpus", "bm25", "minilm", published=0.3509),
]


def described(row: Row) -> str:
    collection, runs, rerank, _, measure, published, _ = row
    lists = "+".join(runs) + (f" reranked by {rerank}" if rerank else "")
    return f"{collection}: {lists} {measure} = {published}"


@cache
def judgements(collection: str, measure: str) -> Qrels:
    """CODEC's authors judge precision and recall by binary judgements of their own."""
    folder = parity_data(collection)
    if collection == "nfcorpus":
        return load_qrels(folder / "qrels" / "test.trec")
    binary = collection == "codec" and not measure.startswith("nDCG")
    return load_qrels(folder / ("qrels.binary.txt" if binary else "qrels.txt"))


@cache
def list_of(collection: str, name: str) -> Run:
    return load_run(
        parity_data(collection) / "runs" / f"{name}.trec.gz", name=name, read_options=BEST
    )


def aligned(
    collection: str, runs: tuple[str, ...], rerank: str | None, measure: str
) -> AlignedRuns:
    folder = parity_data(collection)
    space = LOG_PROB if collection == "codec" else ORDER
    rerankers = []
    if rerank is not None:
        path = folder / "rerank" / f"{rerank}.trec.gz"
        rerankers = [load_run(path, name="rerank", score_space=space["rerank"], read_options=BEST)]
    return align(
        judgements(collection, measure),
        [list_of(collection, name) for name in runs],
        rerankers=rerankers,
        complete=collection in COMPLETE,
    )


def mean(
    system: System,
    runs: AlignedRuns,
    measure: str,
    *,
    spaces: Mapping[str, ScoreSpace] | None = None,
) -> float:
    runs = replace(runs, spaces=spaces or {})
    [scores] = evaluate_systems([system], runs, [parse_measure(measure)])
    return float(scores.values[0].mean())


@pytest.mark.parametrize("row", PUBLISHED, ids=described)
def test_a_published_figure_comes_out(row: Row) -> None:
    collection, runs, rerank, config, measure, published, digits = row
    system = System.model_validate({"name": "system", "runs": runs, **config})
    space = LOG_PROB if collection == "codec" else ORDER
    found = mean(system, aligned(collection, runs, rerank, measure), measure, spaces=space)
    assert round(found, digits) == published


def test_jqara_published_fusion_file_agrees_with_ours() -> None:
    folder = parity_data("jqara")
    run = load_run(folder / "bge-m3+all.published-fusion.trec.gz", name="published")
    runs = align(judgements("jqara", "nDCG@10"), [run], complete=True)
    system = System(name="published", runs=("published",))
    assert round(mean(system, runs, "nDCG@10"), 4) == 0.5760
    assert round(mean(system, runs, "RR@10"), 4) == 0.8178


def covidex(rank_from: Literal["score", "column"]) -> dict[str, float]:
    """Our RRF (k = 60) of covidex.t5 and covidex.sim, cut at 1,000."""
    folder = parity_data("trec-covid-round2") / "runs"
    read_options = ReadOptions(rank_from=rank_from)
    names = ("t5", "sim")
    lists = [
        load_run(folder / f"covidex.{n}.trec.gz", name=n, read_options=read_options) for n in names
    ]
    runs = align(judgements("trec-covid-round2", "nDCG@10"), lists)
    system = System.model_validate(
        {"name": "fuse", "runs": names, "fusion": {"method": "rrf", "k": 60}, "top_k": 1000}
    )
    return {name: round(mean(system, runs, name), 4) for name in ("nDCG@10", "P@5", "AP")}


def test_covidex_fuse_comes_out_from_the_rank_columns() -> None:
    assert covidex("column") == {"nDCG@10": 0.5904, "P@5": 0.6743, "AP": 0.2910}


def test_covidex_fuse_is_another_number_from_the_tied_scores() -> None:
    assert covidex("score")["nDCG@10"] == 0.5905


def test_covidex_fuse_the_published_file_scores_the_same() -> None:
    folder = parity_data("trec-covid-round2") / "runs"
    run = load_run(folder / "covidex.fuse.trec.gz", name="fuse")
    runs = align(judgements("trec-covid-round2", "nDCG@10"), [run])
    system = System(name="fuse", runs=("fuse",))
    found = {name: round(mean(system, runs, name), 4) for name in ("nDCG@10", "P@5", "AP")}
    assert found == {"nDCG@10": 0.5904, "P@5": 0.6743, "AP": 0.2910}


def test_fusion_loses_on_trec_dl_2019() -> None:
    """A tool that can only report gains is wrong: tas-b alone beats its fusion with BM25."""
    runs = aligned("trec-dl-2019", ("bm25", "tas-b"), None, "nDCG@10")
    fused = System.model_validate({"name": "rrf", "runs": ("bm25", "tas-b"), "fusion": "rrf"})
    single = System(name="tas-b", runs=("tas-b",))
    assert mean(single, runs, "nDCG@10") > mean(fused, runs, "nDCG@10")

"""nfcorpus from its texts: the published figures of BM25, MiniLM and their fusions.

``make hybrid`` takes the whole collection through an embedded Chroma; here a sample does.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.load_records import load_qrels
from fusion_bench.measures import parse_measure
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.options import HybridSettings
from fusion_bench.models.retrieval import (
    Ranking,
    Retriever,
    SearchContext,
    SearchTexts,
    read_texts,
)
from fusion_bench.models.retrievers.dense import DenseRetriever, VectorSource
from fusion_bench.models.retrievers.hybrid import HybridMethod
from fusion_bench.models.retrievers.lexical import LexicalRetriever
from fusion_bench.ranking.system_scores import evaluate_systems
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity

YAML = "name: nfcorpus\nqrels: test.trec\nqueries: queries.jsonl\ndocuments: corpus.jsonl.gz\n"
MIN_MAX = {"method": "weighted_score", "missing": "zero", "normalize": "min_max"}
SAMPLE, FILLERS, DEPTH = 20, 200, 50
#: The index is approximate and built anew each time: a swap or two in 20 lists.
TOLERANCE = 0.01

Lists = Mapping[str, Mapping[str, Ranking]]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchTexts]:
    source, folder = parity_data("nfcorpus"), tmp_path_factory.mktemp("nfcorpus")
    for name in ("corpus.jsonl.gz", "queries.jsonl", "qrels/test.trec"):
        shutil.copy(source / name, folder)
    path = folder / "dataset.yaml"
    path.write_text(YAML, encoding="utf-8")
    return path, read_texts(path)


def stored() -> VectorSource:
    return VectorSource(None, parity_data("nfcorpus") / "minilm_embeddings_f16.npz")


def search(retriever: Retriever, texts: SearchTexts, depth: int) -> Mapping[str, Ranking]:
    return retriever.search(texts, depth, SearchContext(AnswerStore(), lambda *_: None))


def ndcg(path: Path, lists: Lists, **system: Any) -> float:  # noqa: ANN401 - a system's own keys
    qrels = load_qrels(path.parent / "test.trec").to_dict()
    chosen = {q: qrels[q] for q in next(iter(lists.values()))}
    tables = {name: {q: dict(r) for q, r in run.items()} for name, run in lists.items()}
    runs = [Run.from_dict(name, table) for name, table in tables.items()]
    aligned = align(Qrels.from_dict(chosen), runs)
    model = System.model_validate({"name": "s", "runs": [*lists], **system})
    (scores,) = evaluate_systems([model], aligned, [parse_measure("nDCG@10")])
    return float(scores.values.mean())


def test_figures_of_the_whole_collection(collection: tuple[Path, SearchTexts]) -> None:
    path, texts = collection
    bm25 = search(LexicalRetriever(k1=1.2), texts, 1000)
    minilm = search(DenseRetriever(stored()), texts, 1000)
    assert ndcg(path, {"bm25": bm25}) == pytest.approx(0.3180, abs=5e-5)
    assert ndcg(path, {"minilm": minilm}) == pytest.approx(0.3159, abs=5e-5)
    both = {"bm25": bm25, "minilm": minilm}
    assert ndcg(path, both, fusion={"method": "rrf", "k": 60}) == pytest.approx(0.351, abs=5e-4)
    assert ndcg(path, both, fusion=MIN_MAX) == pytest.approx(0.354, abs=5e-4)


def test_a_sample_through_chroma(collection: tuple[Path, SearchTexts]) -> None:
    path, texts = collection
    qrels = load_qrels(path.parent / "test.trec").to_dict()
    queries = {q: texts.queries[q] for q in sorted(texts.queries)[:SAMPLE]}
    judged = {d for q in queries for d in qrels[q]}
    fillers = [d for d in texts.documents if d not in judged][:FILLERS]
    documents = {d: texts.documents[d] for d in (*sorted(judged), *fillers)}
    sample = SearchTexts(documents, queries, texts.queries_file)
    settings = HybridSettings(tokens="stem", zero_padding=False)
    hybrid = search(HybridMethod(stored(), settings), sample, DEPTH)
    dense_alone = HybridSettings(sparse_weight=0.0)
    dense = search(HybridMethod(stored(), dense_alone), sample, DEPTH)
    # Exact search, and the bench's own RRF; both systems' lists are twice as deep.
    exact = search(DenseRetriever(stored()), sample, 2 * DEPTH)
    found, wanted = ndcg(path, {"dense": dense}), ndcg(path, {"exact": exact})
    assert found == pytest.approx(wanted, abs=TOLERANCE)
    overlap = [
        len({d for d, _ in dense[q][:10]} & {d for d, _ in exact[q][:10]}) / 10 for q in queries
    ]
    assert np.mean(overlap) > 0.95
    both = {"exact": exact, "bm25": search(LexicalRetriever(), sample, 2 * DEPTH)}
    fused = ndcg(path, both, fusion={"method": "rrf", "k": 60})
    # BM25's formula differs in the weight of words that most documents hold.
    assert ndcg(path, {"hybrid": hybrid}) == pytest.approx(fused, abs=TOLERANCE)

"""``make hybrid``: nfcorpus through semche's retriever over Chroma, against its figures.

The index is approximate: nDCG@10 may differ by .003 from exact search.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import ir_measures
import numpy as np

from fusion_bench.io.load_records import load_qrels
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.options import HybridSettings
from fusion_bench.models.retrieval import Ranking, SearchContext, SearchTexts, read_texts
from fusion_bench.models.retrievers.dense import VectorSource, write_vectors
from fusion_bench.models.retrievers.hybrid import HybridMethod

Qrels: TypeAlias = dict[str, dict[str, int]]
VARIABLE: Final = "FUSION_BENCH_PARITY_DATA"
YAML: Final = "name: n\nqrels: test.trec\nqueries: queries.jsonl\ndocuments: {documents}\n"
TOLERANCE: Final = 0.003
#: Documents per query; each search fetches twice as many.
DEPTH: Final = 500
#: Name, settings, nDCG@10 of the same formula over exact search.
ROWS: Final = (
    ("Chroma alone", HybridSettings(sparse_weight=0.0), 0.3159),
    ("RRF, stemmed", HybridSettings(tokens="stem", zero_padding=False), 0.3512),
    ("RRF, stemmed, zero padding", HybridSettings(tokens="stem"), 0.3426),
    ("RRF, words between blanks", HybridSettings(zero_padding=False), 0.3170),
    ("RRF, as designed", HybridSettings(), 0.3062),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a figure is out of its tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small made collection, a second")
    is_toy = parser.parse_args(arguments).toy
    root = os.environ.get(VARIABLE)
    if not is_toy and not root:
        print(f"{VARIABLE} is not set: name the folder that holds nfcorpus")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        vectors = (
            write_toy(Path(folder)) if is_toy else copy_files(Path(root or "") / "nfcorpus", folder)
        )
        texts = read_texts(Path(folder) / "dataset.yaml")
        qrels = load_qrels(Path(folder) / "test.trec").to_dict()
        source = VectorSource(None, vectors)
        if is_toy:
            return print_toy(texts, qrels, source)
        return print_rows(texts, qrels, source)


def copy_files(source: Path, folder: str) -> Path:
    """Make nfcorpus a dataset of ``folder``; the archive of its vectors."""
    for name in ("corpus.jsonl.gz", "queries.jsonl", "qrels/test.trec"):
        shutil.copy(source / name, folder)
    spec = YAML.format(documents="corpus.jsonl.gz")
    (Path(folder) / "dataset.yaml").write_text(spec, encoding="utf-8")
    return source / "minilm_embeddings_f16.npz"


def write_toy(folder: Path) -> Path:
    """Write a made collection of 40 documents and 4 queries; the archive of its vectors."""
    documents = {f"d{i}": f"topic{i % 4} word{i % 7} word{i}" for i in range(40)}
    queries = {f"q{i}": f"topic{i} word{i}" for i in range(4)}
    for name, texts in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        lines = (json.dumps({"id": item, "text": text}) for item, text in texts.items())
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = [f"q{i % 4} 0 d{i} 1\n" for i in range(12)]
    (folder / "test.trec").write_text("".join(judged), encoding="utf-8")
    spec = YAML.format(documents="corpus.jsonl")
    (folder / "dataset.yaml").write_text(spec, encoding="utf-8")
    random = np.random.default_rng(0)
    vectors = [
        {name: random.normal(size=8) + 2 * np.eye(8)[int(name[1:]) % 4] for name in names}
        for names in (documents, queries)
    ]
    write_vectors(folder / "vectors.npz", *vectors)
    return folder / "vectors.npz"


def print_toy(texts: SearchTexts, qrels: Qrels, source: VectorSource) -> int:
    """Print the figures of the made collection, which has no figures to compare with."""
    print(f"{'toy':<28} nDCG@10")
    for name, settings, _ in ROWS:
        print(f"{name:<28} {measure(texts, qrels, HybridMethod(source, settings), 20):.4f}")
    return 0


def print_rows(texts: SearchTexts, qrels: Qrels, source: VectorSource) -> int:
    """Print the figures of nfcorpus; 1 where one is out of its tolerance."""
    outside = 0
    print(f"{'nfcorpus, 323 queries':<28} nDCG@10  expected")
    for name, settings, expected in ROWS:
        value = measure(texts, qrels, HybridMethod(source, settings), DEPTH)
        is_within = abs(value - expected) <= TOLERANCE
        outside += not is_within
        print(f"{name:<28} {value:.4f}   {expected:.4f}{'' if is_within else '  OUTSIDE'}")
    return int(outside > 0)


def measure(texts: SearchTexts, qrels: Qrels, method: HybridMethod, depth: int) -> float:
    """nDCG@10 of a method."""
    context = SearchContext(AnswerStore(), lambda *_: None)
    return ndcg(qrels, method.search(texts, depth, context))


def ndcg(qrels: Qrels, rankings: Mapping[str, Ranking]) -> float:
    """Mean nDCG@10 over all judged queries."""
    parsed = ir_measures.parse_measure("nDCG@10")
    run = {query: dict(ranking) for query, ranking in rankings.items()}
    return float(ir_measures.calc_aggregate([parsed], qrels, run)[parsed])


if __name__ == "__main__":
    sys.exit(main())

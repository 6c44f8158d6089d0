"""``make hybrid``: nfcorpus through semche's retriever over Chroma, against its figures.

The index is approximate: nDCG@10 may differ by .003 from exact search.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import ir_measures

from fusion_bench.io.load_records import load_qrels
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.retrieve.common import Ranking
from fusion_bench.retrieve.methods._base import SearchContext
from fusion_bench.retrieve.methods.dense import VectorSource
from fusion_bench.retrieve.methods.hybrid import HybridMethod, HybridSettings
from fusion_bench.retrieve.texts import TextFiles, read_texts

VARIABLE: Final = "FUSION_BENCH_PARITY_DATA"
YAML: Final = "name: n\nqrels: test.trec\nqueries: queries.jsonl\ndocuments: corpus.jsonl.gz\n"
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


def main() -> int:
    """Print the table; 1 where a figure is out of its tolerance."""
    root = os.environ.get(VARIABLE)
    if not root:
        print(f"{VARIABLE} is not set: name the folder that holds nfcorpus")
        return 2
    source = Path(root) / "nfcorpus"
    vectors = VectorSource(None, source / "minilm_embeddings_f16.npz")
    outside = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset.yaml"
        path.write_text(YAML, encoding="utf-8")
        for name in ("corpus.jsonl.gz", "queries.jsonl", "qrels/test.trec"):
            shutil.copy(source / name, folder)
        texts = read_texts(TextFiles(path))
        qrels = load_qrels(path.with_name("test.trec")).to_dict()
        print(f"{'nfcorpus, 323 queries':<28} nDCG@10  expected")
        for name, settings, expected in ROWS:
            context = SearchContext(AnswerStore(), lambda *_: None)
            value = ndcg(qrels, HybridMethod(vectors, settings).search(texts, DEPTH, context))
            is_within = abs(value - expected) <= TOLERANCE
            outside += not is_within
            print(f"{name:<28} {value:.4f}   {expected:.4f}{'' if is_within else '  OUTSIDE'}")
    return int(outside > 0)


def ndcg(qrels: dict[str, dict[str, int]], rankings: Mapping[str, Ranking]) -> float:
    """Mean nDCG@10 over all judged queries."""
    measure = ir_measures.parse_measure("nDCG@10")
    run = {query: dict(ranking) for query, ranking in rankings.items()}
    return float(ir_measures.calc_aggregate([measure], qrels, run)[measure])


if __name__ == "__main__":
    sys.exit(main())

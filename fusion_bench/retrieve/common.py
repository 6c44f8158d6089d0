"""What the retrievers share: optional imports, stemmed tokens, and cutting scores to a list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from fusion_bench.data.ordering import FloatArray, positions
from fusion_bench.errors import DataError
from fusion_bench.util.optional_imports import import_optional

#: Documents with their scores, best first.
Ranking: TypeAlias = list[tuple[str, float]]


import_extra = partial(import_optional, extra="collections")


def stem_texts(texts: Sequence[str], *, language: str = "english") -> list[list[str]]:
    """Tokens of each text: lower case, words of two letters or more, stopwords out, stemmed.

    Args:
        texts: One string a text.
        language: Snowball stemmer and stopword list, as PyStemmer and bm25s name them.
    """
    bm25s = import_extra("bm25s", purpose="tokenizing for BM25")
    stemmer = import_extra("Stemmer", purpose="stemming").Stemmer(language)
    tokens: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords=language, stemmer=stemmer, return_ids=False, show_progress=False
    )
    return tokens


def rank_documents(
    ids: Sequence[str],
    scores: FloatArray,
    *,
    depth: int,
    decimals: int = 6,
    above: float | None = None,
) -> Ranking:
    """The best documents of one query.

    Scores are rounded before they are ranked, so that a list written with that many decimals is
    in the order of its own scores. Equal scores stand in trec_eval's order: greater id first.

    Args:
        ids: Document ids, shape (D,).
        scores: Shape (D,): finite.
        depth: At most so many documents are returned.
        decimals: Decimal places that are kept.
        above: Only documents whose rounded score is greater are returned; None = all. BM25 and
            PageRank give 0 to what they did not find, which is not a result.

    Raises:
        DataError: Ids and scores differ in number, or a score is not finite.
    """
    if len(ids) != len(scores):
        raise DataError(f"{len(ids)} document ids for {len(scores)} scores: one each is needed")
    kept = np.asarray(np.round(scores, decimals), dtype=np.float64)
    if not np.isfinite(kept).all():
        raise DataError(f"score {kept[~np.isfinite(kept)][0]} is not a finite number")
    # Scores outside the list become NaN: "not a candidate" to the project's one sort.
    if above is not None:
        kept = np.where(kept > above, kept, np.nan)
    by_id = sorted(range(len(ids)), key=lambda d: ids[d].encode(), reverse=True)
    tie_order = np.empty(len(ids), dtype=np.int64)
    tie_order[by_id] = np.arange(len(ids))
    place = positions(kept, np.array([0, len(ids)]), tie_order=tie_order)
    best = np.flatnonzero((place > 0) & (place <= depth))
    order = best[np.argsort(place[best])]
    # Adding 0.0 turns a rounded -0.0 into 0.0, which would otherwise be written with its sign.
    return [(ids[d], float(kept[d] + 0.0)) for d in order]

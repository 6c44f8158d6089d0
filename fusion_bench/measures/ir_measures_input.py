"""Our order and the judgements as ir_measures takes them.

What is handed over is our order, as pseudo-scores that fall strictly: trec_eval compares scores
as 32-bit floats, and the providers behind ir_measures settle equal scores in different ways. The
ids are replaced by numbers, because some providers write them to files that are split at blanks,
and gdeval reads no other query ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import slices
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.records import Qrels
from fusion_bench.errors import ConfigError

__all__ = ["judgements_table", "ranked_table"]


def ranked_table(
    runs: AlignedRuns, positions: IntArray, kept: IntArray, codes: dict[str, int]
) -> dict[str, dict[str, float]]:
    """Query → document → pseudo-score; whole numbers, so exact as 32-bit floats too."""
    ranked: dict[str, dict[str, float]] = {}
    depth = int(positions.max(initial=0)) + 1
    columns = (runs.query_index[kept], runs.documents[kept], depth - positions[kept])
    for query, document, score in zip(*(column.tolist() for column in columns), strict=True):
        name = _number(runs.vocabulary[document], codes)
        ranked.setdefault(str(query + 1), {})[name] = float(score)
    return ranked


def judgements_table(
    names: Sequence[str], runs: AlignedRuns, qrels: Qrels | None, codes: dict[str, int]
) -> dict[str, dict[str, int]]:
    """Query → document → grade, for the queries of the runs and in their order.

    Negative grades are left out, as to trec_eval they are not judged: pytrec_eval, handed some,
    crashes or never returns. A query that had no others keeps one document that nobody returns.
    """
    if qrels is None:
        raise ConfigError(
            f"{', '.join(names)}: computed by ir_measures, which needs the judgements: pass qrels"
        )
    if (qrels.grades < 0).any() and any(name.startswith("infAP") for name in names):
        raise ConfigError(
            "infAP takes a negative grade for 'pooled, not judged', which pytrec_eval cannot be "
            "handed: leave infAP out, or the negative grades"
        )
    rows = dict(slices(qrels.queries, qrels.offsets))
    missing = [query for query in runs.queries if query not in rows]
    if missing:
        raise ConfigError(
            f"query {missing[0]!r} of the runs is not in the qrels given for {names[0]}"
        )
    return {
        str(q): {
            _number(qrels.vocabulary[document], codes): grade
            for document, grade in zip(
                qrels.documents[rows[query]].tolist(),
                qrels.grades[rows[query]].tolist(),
                strict=True,
            )
            if grade >= 0
        }
        or {"nothing": 0}
        for q, query in enumerate(runs.queries, start=1)
    }


def _number(document: str, codes: dict[str, int]) -> str:
    """A stand-in for a document id, the same at every mention."""
    return f"d{codes.setdefault(document, len(codes))}"

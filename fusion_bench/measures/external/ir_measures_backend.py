"""Values that ir_measures computes.

ir_measures gets our order, as pseudo-scores that fall strictly: trec_eval compares scores as
32-bit floats, and the providers behind ir_measures break ties in different ways. Numbers replace
the ids, because some providers write ids to files that are split at blanks, and gdeval reads no
other query ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from subprocess import SubprocessError
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.rows.grouped_rows import query_slices
from fusion_bench.errors import ConfigError
from fusion_bench.measures.external.ir_measures_package import (
    import_ir_measures,
    parse_with_ir_measures,
    without_judged_only,
)
from fusion_bench.measures.rankings.ranking import has_grade

#: The providers behind ir_measures are scripts, extensions and Python code of many hands; some
#: assert on what the installed pandas hands them.
PROVIDER_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    LookupError,
    OSError,
    RuntimeError,
    SubprocessError,
    TypeError,
    ValueError,
)


def evaluate_externally(
    names: Sequence[str],
    runs: AlignedRuns,
    positions: IntArray,
    qrels: Qrels | None,
) -> FloatArray:
    """Values that ir_measures computes for the given order.

    ``judged_only`` is done here, by leaving the unjudged documents out: most providers of
    ir_measures do not have it.

    Args:
        names: Canonical names, (M,).
        runs: Whose queries and documents.
        positions: Shape (N,), 1-based; 0 = not returned.
        qrels: The judgments, which such measures need of unreturned documents too.

    Returns:
        Shape (M, Q). A query with an empty list has the measure's default.

    Raises:
        ConfigError: The judgments are missing, lack a query of the runs, or have negative grades
            that the measure would need; or ir_measures fails.
    """
    # A stand-in for each document id, the same at every mention.
    codes: dict[str, str] = defaultdict(lambda: f"d{len(codes)}")
    judgments = _judgments_table(names, runs, qrels, codes)
    measures = [parse_with_ir_measures(name) for name in names]
    values = np.empty((len(names), len(runs.queries)))
    for judged_only in (False, True):
        chosen = [
            i for i, m in enumerate(measures) if bool(m.params.get("judged_only")) is judged_only
        ]
        is_kept = (positions > 0) & has_grade(runs) if judged_only else positions > 0
        kept = np.flatnonzero(is_kept)
        plain = [without_judged_only(measures[i]) for i in chosen]
        values[chosen] = _calculate_values(
            plain, _ranked_table(runs, positions, kept, codes), judgments
        )
    return values


def _calculate_values(
    measures: Sequence[Any],
    ranked: dict[str, dict[str, float]],
    judgments: dict[str, dict[str, int]],
) -> FloatArray:
    """Shape (M, Q): one row a measure; queries in the order of the judgments."""
    values = np.empty((len(measures), len(judgments)))
    index = {query: q for q, query in enumerate(judgments)}
    known = {query: judgments[query] for query in ranked}
    for row, measure in zip(values, measures, strict=True):
        row[:] = measure.DEFAULT
        if not ranked:
            continue  # some providers cannot read an empty run
        try:
            # One measure at a time: together, they may be computed from one another's options.
            with import_ir_measures() as ir_measures:
                for metric in ir_measures.iter_calc([measure], known, ranked):
                    row[index[metric.query_id]] = metric.value
        except PROVIDER_ERRORS as e:
            raise ConfigError(f"{measure}: ir_measures could not compute it: {e}") from e
    return values


def _ranked_table(
    runs: AlignedRuns, positions: IntArray, kept: IntArray, codes: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Query → document → pseudo-score; whole numbers, so exact as 32-bit floats too."""
    ranked: dict[str, dict[str, float]] = {}
    depth = int(positions.max(initial=0)) + 1
    columns = (runs.query_index[kept], runs.documents[kept], depth - positions[kept])
    for query, document, score in zip(*(column.tolist() for column in columns), strict=True):
        ranked.setdefault(str(query + 1), {})[codes[runs.vocabulary[document]]] = float(score)
    return ranked


def _judgments_table(
    names: Sequence[str], runs: AlignedRuns, qrels: Qrels | None, codes: dict[str, str]
) -> dict[str, dict[str, int]]:
    """Query → document → grade, for the queries of the runs and in their order.

    Negative grades are left out, as to trec_eval they are not judged: pytrec_eval, handed some,
    crashes or never returns. A query that had no others keeps one document that no run returns.
    """
    if qrels is None:
        raise ConfigError(
            f"{', '.join(names)}: computed by ir_measures, which needs the judgments: pass qrels"
        )
    if (qrels.grades < 0).any() and any(name.startswith("infAP") for name in names):
        raise ConfigError(
            "infAP takes a negative grade for 'pooled, not judged', which pytrec_eval cannot be "
            "handed: leave infAP out, or the negative grades"
        )
    rows = dict(query_slices(qrels.queries, qrels.offsets))
    missing = [query for query in runs.queries if query not in rows]
    if missing:
        raise ConfigError(
            f"query {missing[0]!r} of the runs is not in the qrels given for {names[0]}"
        )
    return {
        str(q): {
            codes[qrels.vocabulary[document]]: grade
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

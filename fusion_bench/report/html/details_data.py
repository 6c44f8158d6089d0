"""Ranks, first documents and sources of one collection as plain data for the views of a page.

Beside a collection's own keys::

    "texts": [Q texts or null],
    "details": {
      "kept": null | [query indices],        # null = all queries keep their documents
      "documents": [ids], "document_texts": [texts or null],
      "relevant": {"query": [M], "documents": [M numbers], "grades": [M],
                   "sources": [S], "source_ranks": [S × [M]], "systems": [T],
                   "system_ranks": [T × [M]]},                            # rank 0 = not returned
      "unjudged": {system: [Q counts among the first ten]},
      "top": [ {"system", "labels": [terms], "query": [L], "documents": [L numbers],
                "grades": [L, null = unjudged], "scores": [L], "terms": [labels × [L or null]]} ],
      "overlap": …, "leave_one_out": [rows], "depth_curve": [rows] }

Rows of a query stand together, the best document first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.details.records import CollectionDetails
from fusion_bench.evaluation.details.top_documents import TopDocuments
from fusion_bench.report.html.plain_text import readable_text
from fusion_bench.util.formatting import escape_control_chars

#: Scores and terms have so many significant digits, as the order of documents does.
DIGITS = 12


def details_data(details: CollectionDetails) -> dict[str, Any]:
    """The keys ``texts`` and ``details`` of a collection."""
    relevant, numbers = details.relevant, _number_documents(details)
    is_whole = len(details.kept_queries) == len(details.queries)
    texts = [details.document_texts.get(document) for document in numbers]
    data = {
        "kept": None if is_whole else details.kept_queries.tolist(),
        "documents": [escape_control_chars(document) for document in numbers],
        "document_texts": [text and readable_text(text) for text in texts],
        "relevant": {
            "query": relevant.query.tolist(),
            "documents": [numbers[document] for document in relevant.documents],
            "grades": relevant.grades.tolist(),
            "sources": _names(relevant.sources),
            "source_ranks": relevant.source_ranks.tolist(),
            "systems": _names(relevant.systems),
            "system_ranks": relevant.system_ranks.tolist(),
        },
        "unjudged": {
            escape_control_chars(name): counts.tolist() for name, counts in details.unjudged.items()
        },
        "top": [_top_data(top, numbers) for top in details.top],
        "overlap": {**details.overlap.to_dict(), "sources": _names(details.overlap.sources)},
        "leave_one_out": _rows(details.leave_one_out.to_dict()["rows"]),
        "depth_curve": _rows(details.depth_curve.to_dict()["rows"]),
    }
    return {"texts": [text and readable_text(text) for text in details.texts], "details": data}


def _number_documents(details: CollectionDetails) -> dict[str, int]:
    """Document → its number, over all that the details name."""
    names = dict.fromkeys(details.relevant.documents)
    for top in details.top:
        names |= dict.fromkeys(top.documents)
    return {name: number for number, name in enumerate(names)}


def _top_data(top: TopDocuments, numbers: dict[str, int]) -> dict[str, Any]:
    graded = zip(top.grades.tolist(), top.judged.tolist(), strict=True)
    return {
        "system": escape_control_chars(top.system),
        "labels": _names(top.labels),
        "query": top.query.tolist(),
        "documents": [numbers[document] for document in top.documents],
        "grades": [grade if is_judged else None for grade, is_judged in graded],
        "scores": _rounded(top.scores),
        "terms": [_rounded(term) for term in top.terms],
    }


def _rounded(values: FloatArray) -> list[float | None]:
    finite = np.isfinite(values).tolist()
    texts = (f"{value:.{DIGITS}g}" for value in values.tolist())
    return [float(text) if is_known else None for text, is_known in zip(texts, finite, strict=True)]


def _names(names: Iterable[str]) -> list[str]:
    return [escape_control_chars(name) for name in names]


def _rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records whose texts have no control characters."""
    return [
        {key: escape_control_chars(v) if isinstance(v, str) else v for key, v in row.items()}
        for row in rows
    ]

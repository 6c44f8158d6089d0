"""Names that files and data frames use for the same column; the first is this package's own."""

from __future__ import annotations

from typing import Final

#: Role of a column → the names that are known for it, in lower case.
COLUMN_NAMES: Final = {
    "query": ("query", "query_id", "query-id", "qid", "q_id", "topic"),
    "document": ("document", "doc_id", "doc-id", "docid", "docno", "corpus-id", "corpus_id", "doc"),
    "score": ("score", "value", "sim"),
    "grade": ("grade", "relevance", "rel", "score", "label"),
    "rank": ("rank",),
}

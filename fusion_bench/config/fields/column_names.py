"""Names that files and data frames use for the same column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: What every row names.
ID_ROLES: Final = ("query", "document")
#: Kind of file → what a row says of its document.
VALUE_ROLES: Final[Mapping[str, str]] = {"run": "score", "qrels": "grade"}
#: What the columns of a file may hold.
QRELS_ROLES: Final = (*ID_ROLES, VALUE_ROLES["qrels"])
RUN_ROLES: Final = (*ID_ROLES, VALUE_ROLES["run"], "rank")

#: Role of a column → the names that are known for it, in lower case. The first of them that a
#: table has counts: an id goes before ``query`` and ``document``, which may be texts beside it.
COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query_id", "query-id", "qid", "q_id", "topic_id", "query", "topic"),
    "document": (
        "document_id",
        "doc_id",
        "doc-id",
        "docid",
        "docno",
        "corpus-id",
        "corpus_id",
        "document",
        "doc",
    ),
    "score": ("score", "value", "sim", "similarity", "relevance_score"),
    "grade": ("grade", "relevance", "rel", "score", "label", "judgment", "judgement"),
    "rank": ("rank",),
}

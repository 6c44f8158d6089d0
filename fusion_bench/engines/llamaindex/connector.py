"""LlamaIndex's connector: any retriever object."""

from __future__ import annotations

from typing import ClassVar

from fusion_bench.connector import PullQuery, connectors
from fusion_bench.engines._connectors.retriever_objects import (
    FrameworkObject,
    RetrieverConnector,
    RetrieverObject,
    Row,
    choose_field,
)
from fusion_bench.util.calls.user_code import call_function

#: Value of ``id_field`` that names the document a node is of.
SOURCE_DOCUMENT = "ref_doc_id"


@connectors.register
class LlamaIndexConnector(RetrieverConnector):
    """Objects with ``aretrieve`` or ``retrieve`` that return nodes with scores.

    How many a retriever returns is its own ``similarity_top_k``. ``id_field: ref_doc_id`` names the
    document that a node is of, where each document is one node.
    """

    source: ClassVar[str] = (
        "https://developers.llamaindex.ai/python/framework-api-reference/retrievers/"
    )
    dialect: ClassVar[str] = "llamaindex"
    package: ClassVar[str] = "llama-index-core"
    methods: ClassVar[tuple[str, ...]] = ("aretrieve", "retrieve")

    method: str = "llamaindex"

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,  # noqa: ARG002 - see base
        depth: int,  # noqa: ARG002 - see base
    ) -> FrameworkObject:
        """Its nodes for the query's text."""
        name = next(name for name in self.methods if hasattr(retriever, name))
        return await call_function(getattr(retriever, name), query.text)

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """The node's id, its score, and its content."""
        node = getattr(document, "node", document)
        metadata = getattr(node, "metadata", {})
        name = choose_field(metadata, settings.id_field, getattr(node, "node_id", None))
        if settings.id_field == SOURCE_DOCUMENT:
            name = getattr(node, SOURCE_DOCUMENT, None)
        score = getattr(document, "score", None)
        read_content = getattr(node, "get_content", None)
        content = None if read_content is None else read_content()
        return name, choose_field(metadata, settings.score_field, score), content

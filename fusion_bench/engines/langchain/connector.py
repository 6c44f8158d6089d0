"""LangChain's connector: any retriever object."""

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


@connectors.register
class LangChainConnector(RetrieverConnector):
    """Objects with ``ainvoke`` or ``invoke`` that return documents.

    A ``BaseRetriever`` is asked for ``k`` documents; where it does not take that, its own number
    counts. A document has no score but one in its metadata.
    """

    source: ClassVar[str] = "https://reference.langchain.com/python/langchain_core/retrievers/"
    dialect: ClassVar[str] = "langchain"
    package: ClassVar[str] = "langchain-core"
    methods: ClassVar[tuple[str, ...]] = ("ainvoke", "invoke")

    method: str = "langchain"

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,  # noqa: ARG002 - see base
        depth: int,
    ) -> FrameworkObject:
        """Its documents for the query's text."""
        if hasattr(retriever, "_expects_other_args"):  # a BaseRetriever drops what it does not take
            return await call_function(retriever.invoke, query.text, k=depth)
        name = next(name for name in self.methods if hasattr(retriever, name))
        return await call_function(getattr(retriever, name), query.text)

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """``id``, a score of the metadata, ``page_content``."""
        metadata = getattr(document, "metadata", {})
        name = choose_field(metadata, settings.id_field, getattr(document, "id", None))
        score = choose_field(metadata, settings.score_field, None)
        return name, score, getattr(document, "page_content", None)

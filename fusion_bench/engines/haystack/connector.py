"""Haystack's connector: any retriever component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fusion_bench.connector import LegName, PullQuery, QueryForm, connectors
from fusion_bench.engines._connectors.answers import vector_of
from fusion_bench.engines._connectors.retriever_objects import (
    FrameworkObject,
    RetrieverConnector,
    RetrieverLeg,
    RetrieverObject,
    Row,
    choose_field,
)
from fusion_bench.util.calls.user_code import call_function
from fusion_bench.util.http.json_fields import malformed_error


class HaystackLeg(RetrieverLeg):
    """A retriever component.

    Attributes:
        form: What it takes: ``query`` with the text, or ``query_embedding`` with a vector.
    """

    form: Literal["text", "vector"] = "text"

    @property
    def query_form(self) -> QueryForm:
        """As it is configured."""
        return self.form


@connectors.register
class HaystackConnector(RetrieverConnector):
    """Components with ``run_async`` or ``run`` that return documents.

    They take ``top_k``, and ``query`` or ``query_embedding``.
    """

    source: ClassVar[str] = "https://docs.haystack.deepset.ai/docs/retrievers"
    dialect: ClassVar[str] = "haystack"
    package: ClassVar[str] = "haystack-ai"
    methods: ClassVar[tuple[str, ...]] = ("run_async", "run")

    method: str = "haystack"
    legs: Annotated[Mapping[LegName, HaystackLeg], Field(min_length=1)]

    async def ask_retriever(
        self,
        retriever: FrameworkObject,
        query: PullQuery,
        leg: str,
        depth: int,
    ) -> FrameworkObject:
        """The documents of the component's answer."""
        asked: dict[str, Any] = {"query": query.text}
        if leg and self.legs[leg].form == "vector":
            asked = {"query_embedding": vector_of(query, leg)}
        name = next(name for name in self.methods if hasattr(retriever, name))
        answer = await call_function(getattr(retriever, name), **asked, top_k=depth)
        if not isinstance(answer, Mapping) or "documents" not in answer:
            raise malformed_error("the component's answer has no 'documents'")
        return answer["documents"]

    def read_document(self, document: FrameworkObject, settings: RetrieverObject) -> Row:
        """``id``, ``score``, ``content``."""
        metadata = getattr(document, "meta", {})
        name = choose_field(metadata, settings.id_field, getattr(document, "id", None))
        score = choose_field(metadata, settings.score_field, getattr(document, "score", None))
        return name, score, getattr(document, "content", None)

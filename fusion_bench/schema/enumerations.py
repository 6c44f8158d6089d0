"""The three enumerations. A member equals its text: ``QueryType.LOCAL == "local"``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import Field


class QueryType(StrEnum):
    """What a query asks for (REQ-ENUM-001)."""

    LOCAL = "local"
    GLOBAL = "global"
    RELATIONSHIP = "relationship"
    HYBRID = "hybrid"


class SearchStrategy(StrEnum):
    """How documents are searched for (REQ-ENUM-002)."""

    KEYWORD = "keyword"
    SEMANTIC = "semantic"
    GRAPH = "graph"
    HYBRID = "hybrid"


class SearchResultType(StrEnum):
    """What a result is (REQ-ENUM-003)."""

    CHUNK = "chunk"
    ENTITY = "entity"
    COMMUNITY = "community"


#: The strategies that return documents of their own; ``hybrid`` fuses them.
SINGLE_STRATEGIES = (SearchStrategy.KEYWORD, SearchStrategy.SEMANTIC, SearchStrategy.GRAPH)

#: In a record the text of a member will do, also from Python.
AnyQueryType: TypeAlias = Annotated[QueryType, Field(strict=False)]
AnyStrategy: TypeAlias = Annotated[SearchStrategy, Field(strict=False)]
AnyResultType: TypeAlias = Annotated[SearchResultType, Field(strict=False)]

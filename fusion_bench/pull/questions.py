"""What is asked: one list of one query each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fusion_bench.config.models import StrictModel
from fusion_bench.connector import Connector, PullQuery
from fusion_bench.errors import ConfigError
from fusion_bench.pull.query_vectors import Vectors
from fusion_bench.util.digests import hash_values

#: The list of the engine's own fused answers.
FUSED_LIST: Final = "engine-fused"


@dataclass(frozen=True)
class ListPlan:
    """One list that is pulled.

    Attributes:
        name: Of a leg, or :data:`FUSED_LIST`.
        depth: Most hits per query.
        is_fused: Whether it is the engine's own fused answer.
    """

    name: str
    depth: int
    is_fused: bool = False


@dataclass(frozen=True)
class Question:
    """One list of one query.

    Attributes:
        plan: The list.
        query: The query.
        key: Of its answer in the store.
    """

    plan: ListPlan
    query: PullQuery
    key: str


def plan_lists(connector: Connector, depth: int) -> tuple[ListPlan, ...]:
    """The legs, and the fused answer where it is configured.

    Args:
        connector: The engine.
        depth: Most hits of the fused answer, and of legs without a depth of their own.

    Raises:
        ConfigError: A leg has the name of the fused list, or a depth is too great for the engine.
    """
    if FUSED_LIST in connector.legs:
        raise ConfigError(f"legs.{FUSED_LIST}: the fused answer has this name: rename the leg")
    plans = [ListPlan(name, leg.depth or depth) for name, leg in connector.legs.items()]
    for plan in plans:
        connector.check_depth(plan.name, plan.depth)
    if connector.fused is None:
        return tuple(plans)
    connector.check_depth("", depth)
    return (*plans, ListPlan(FUSED_LIST, depth, is_fused=True))


def build_queries(texts: Mapping[str, str], vectors: Mapping[str, Vectors]) -> list[PullQuery]:
    """The queries as the legs search for them.

    Args:
        texts: Query id → text.
        vectors: Leg → query id → vector.
    """
    return [
        PullQuery(
            query,
            text,
            {leg: v for leg, of in vectors.items() if isinstance(v := of[query], tuple)},
            {leg: v for leg, of in vectors.items() if isinstance(v := of[query], Mapping)},
        )
        for query, text in texts.items()
    ]


def list_questions(
    plans: Iterable[ListPlan], queries: Sequence[PullQuery], *, texts: bool
) -> list[Question]:
    """Every list of every query; all lists of a query stand together.

    Args:
        plans: The lists.
        queries: The queries.
        texts: Whether the texts of the documents are asked for.
    """
    every = tuple(plans)
    return [
        Question(plan, query, _hash_question(plan, query, texts=texts))
        for query in queries
        for plan in every
    ]


def _hash_question(plan: ListPlan, query: PullQuery, *, texts: bool) -> str:
    """SHA-256 of what an answer depends on besides the settings and the index."""
    names = sorted({*query.vectors, *query.sparse_vectors})
    legs = [name for name in names if plan.is_fused or name == plan.name]
    numbers = [
        text
        for leg in legs
        for text in (leg, repr(query.vectors.get(leg)), repr(query.sparse_vectors.get(leg)))
    ]
    return hash_values(plan.name, plan.depth, int(texts), query.id, query.text, numbers)


def describe_identity(
    connector: Connector, fingerprint: Mapping[str, Any], questions: Sequence[Question]
) -> dict[str, Any]:
    """What all answers of a pull depend on, as JSON: the settings, the index, and what is asked."""
    identity = {
        "settings": describe_settings(connector),
        "fingerprint": dict(fingerprint),
        "questions": hash_values(sorted(question.key for question in questions)),
    }
    data: dict[str, Any] = json.loads(json.dumps(identity))
    return data


def describe_settings(connector: Connector) -> dict[str, Any]:
    """The settings that the lists depend on, as JSON."""
    data: dict[str, Any] = connector.model_dump(
        mode="json", exclude=set(connector.operational), serialize_as_any=True
    )
    fused = connector.fused
    if isinstance(fused, StrictModel):
        data["fused"] = fused.model_dump(mode="json")
    return data

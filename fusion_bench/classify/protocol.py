"""The protocol of a classifier, and what every classification is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fusion_bench.config.query_types import type_of
from fusion_bench.schema import QueryClassification, QueryType, SearchWeights


@dataclass(frozen=True)
class ClassifiedQuery:
    """One query's classification, and how it came about.

    Attributes:
        classification: What the query is taken for.
        failure: Why the classifier gave no answer; empty if it did. Such a query is ``hybrid`` with
            a confidence of 0 (BR-001).
    """

    classification: QueryClassification
    failure: str = ""


class Classifier(Protocol):
    """Says of queries what kind of question they are."""

    def classify(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        """One answer per text, in their order.

        Raises:
            FusionBenchError: The classifier cannot be used at all.
        """
        ...


def make_classification(
    text: str,
    query_type: QueryType,
    confidence: float,
    *,
    entities: Sequence[str] = (),
    expanded: Sequence[str] = (),
) -> QueryClassification:
    """A classification; below a confidence of 0.7 its type is ``hybrid`` (BR-012).

    Args:
        text: The query.
        query_type: The type that the classifier found.
        confidence: How sure it is.
        entities: Names in the query; repeated ones count once.
        expanded: The query in other words; those that only repeat it are left out.
    """
    sure = QueryType(type_of(query_type, confidence, tuple(QueryType)))
    return QueryClassification(
        original_query=text,
        type=sure,
        confidence=confidence,
        extracted_entities=tuple(dict.fromkeys(entities)),
        suggested_weights=SearchWeights.of_type(sure),
        expanded_queries=tuple(other for other in dict.fromkeys(expanded) if other != text),
    )


def make_failure(text: str, reason: str) -> ClassifiedQuery:
    """A query that nobody could classify: ``hybrid``, with a confidence of 0 (BR-001)."""
    return ClassifiedQuery(make_classification(text, QueryType.HYBRID, 0.0), reason)

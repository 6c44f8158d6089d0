"""A classifier of words and patterns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fusion_bench.classify.entities import extract_entities
from fusion_bench.classify.expansion import SYNONYMS, expand_query
from fusion_bench.classify.patterns import QUESTIONS, SEVERAL, SUBJECTS
from fusion_bench.classify.protocol import ClassifiedQuery, make_classification
from fusion_bench.schema import QueryClassification, QueryType

#: Evidence that every query has for no type at all, and the part of it that is given to the best.
DOUBT, BENEFIT = 1.0, 0.25


@dataclass(frozen=True)
class RuleClassifier:
    """Classifies by words and patterns in English, French and Japanese.

    Each pattern that matches is evidence of 4, 2 or 1 for a type. The confidence is
    (evidence of the best type + 0.25) / (all evidence + 1). So a weak word alone, or strong words
    for two types, stay below 0.7, and the query is ``hybrid``.

    Attributes:
        entities: Names that count as entities wherever they stand.
        synonyms: Word → words to put in its place in the expanded queries.
    """

    entities: Collection[str] = ()
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=lambda: SYNONYMS)

    def classify(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        """One answer per text."""
        return [ClassifiedQuery(self.classify_text(text)) for text in texts]

    def classify_text(self, text: str) -> QueryClassification:
        """What kind of question a query is."""
        names = extract_entities(text, self.entities)
        evidence = weigh_evidence(text, names)
        total = sum(evidence.values())
        best = max(evidence, key=evidence.__getitem__, default=QueryType.HYBRID)
        confidence = (evidence[best] + BENEFIT) / (total + DOUBT)
        return make_classification(
            text, best, confidence, entities=names, expanded=expand_query(text, self.synonyms)
        )


def weigh_evidence(text: str, entities: Sequence[str]) -> Counter[QueryType]:
    """Type → what speaks for it.

    Args:
        text: The query.
        entities: Names in it: two of them speak for a relationship, one for a fact.
    """
    evidence: Counter[QueryType] = Counter()
    for each in SUBJECTS:
        if each.pattern.search(text):
            evidence[each.query_type] += each.weight
    if SEVERAL.pattern.search(text):
        evidence[SEVERAL.query_type] += SEVERAL.weight
    is_about_more = bool(evidence)
    asked = max((each.weight for each in QUESTIONS if each.pattern.search(text)), default=0)
    if asked:
        evidence[QueryType.LOCAL] += asked // 2 if is_about_more else asked
    if entities and not is_about_more:
        evidence[QueryType.RELATIONSHIP if len(entities) > 1 else QueryType.LOCAL] += 1
    return evidence

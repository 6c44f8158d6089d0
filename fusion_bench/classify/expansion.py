"""A query in other words, without a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

WORDS_OF_QUESTIONS: Final = """
a an the who whom whose what which when where why how can could may must should shall do does
did is are was were will would has have had i my me we our you your it its there please tell
explain describe to of for in on at about le la les un une des de du qui que quoi quel quelle
quels quelles quand où pourquoi comment combien est-ce peut-on puis-je dois-je je mon ma mes
"""
#: Words that say how is asked, not about what.
QUESTION_WORDS: Final = frozenset(WORDS_OF_QUESTIONS.split())
#: Words that mean about the same in a query.
SYNONYMS: Final[Mapping[str, Sequence[str]]] = {
    "difference": ("comparison",),
    "relationship": ("connection",),
    "overview": ("summary",),
    "summary": ("overview",),
    "cause": ("reason",),
    "allowed": ("permitted",),
    "meaning": ("definition",),
    "error": ("failure",),
    "différence": ("comparaison",),
    "relation": ("lien",),
    "résumé": ("aperçu",),
    "違い": ("比較",),
    "概要": ("要約",),
    "関係": ("関連",),
}
#: Most other forms of one query.
MOST: Final = 5


def expand_query(text: str, synonyms: Mapping[str, Sequence[str]] = SYNONYMS) -> list[str]:
    """Other forms of a query: its words without the question, and with synonyms; at most five.

    Args:
        text: The query.
        synonyms: Word → words to put in its place.
    """
    words = re.findall(r"[\w'’.-]*\w", text)
    kept = [word for word in words if word.lower() not in QUESTION_WORDS]
    forms = [" ".join(kept)] if 0 < len(kept) < len(words) else []
    for word, others in synonyms.items():
        edge = r"\b" if word.isascii() else ""
        pattern = re.compile(rf"{edge}{re.escape(word)}{edge}", re.IGNORECASE)
        if pattern.search(text):
            forms += [pattern.sub(other, text) for other in others]
    return forms[:MOST]

"""Words and patterns that speak for a type of query, in English, French and Japanese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from fusion_bench.schema import QueryType


class Evidence(NamedTuple):
    """A pattern, and how much it says.

    Attributes:
        query_type: The type that it speaks for.
        weight: 4 decides alone and against a question word, 2 decides alone, 1 does not.
        pattern: Matched anywhere in the query, capitals or not.
    """

    query_type: QueryType
    weight: int
    pattern: re.Pattern[str]


def _compile(query_type: QueryType, weight: int, *patterns: str) -> Evidence:
    return Evidence(query_type, weight, re.compile("|".join(patterns), re.IGNORECASE))


#: What is asked about, whatever the form of the question. Each entry counts once.
SUBJECTS: Final[Sequence[Evidence]] = (
    _compile(
        QueryType.RELATIONSHIP,
        4,
        r"\brelat(?:e|es|ed|ion|ions|ionship|ionships)\b",
        r"\b(?:difference|similarit(?:y|ies)|connections?|links?|interplay)\b.*\bbetween\b",
        r"\b(?:differ|differs) from\b|\bdifferent from\b",
        r"\bcompar(?:e|es|ed|ison)\b|\b(?:versus|vs)\b\.?",
        r"\b(?:interact|interacts|interaction|interactions)\b",
        r"\b(?:depends?|dependent|dependency|dependencies)\b.*\bon\b",
        r"\b(?:relation|rapport|lien|différence|comparaison)s?\b.*\bentre\b",
        r"\bcompar(?:er|ez|ons)\b|\binterag|\bdépend\w*\s+d",
        r"関係|関連|違い|比較|相互作用|つながり|依存",
    ),
    _compile(
        QueryType.RELATIONSHIP,
        2,
        r"\b(?:affects?|influences?|causes?|impacts?)\b",
        r"\b(?:together|combin(?:e[sd]?|ing|ations?)|combos?|synerg\w+|at the same time)\b",
        r"\bhelps? with\b|\b(?:goes|go|fits?|works?) (?:well )?with\b",
        r"\bbetween\b.+\band\b",
        r"\b(?:instead of|rather than|take precedence|override[sn]?|overrul\w+)\b",
        r"\b(?:influence|affecte|cause|combinent?|combine[rz]|ensemble|en même temps|prime sur)\b",
        r"影響|組み合わせ|同時に|と一緒に|優先|噛み合|相性",
    ),
    _compile(
        QueryType.GLOBAL,
        4,
        r"\b(?:overviews?|summar(?:y|ies|i[sz]e[sd]?|i[sz]ing)|in general|overall|big picture)\b",
        r"\b(?:main|key|major|common|recurring)"
        r" (?:themes?|topics?|ideas?|trends?|points?|types?)\b",
        r"\b(?:themes?|trends?)\b.*\b(?:across|throughout|in)\b",
        r"\b(?:walk|talk|run|take|guide) (?:me|us) through\b|\bstep by step\b",
        r"\bfrom (?:the )?(?:start|beginning|first)\b.*\bto\b",
        r"\bthe (?:whole|entire|full|complete) \w+",
        r"\bcomment se (?:déroule|passe)\b|\bdu début (?:à|jusqu)|\bétape par étape\b",
        r"\b(?:résum(?:é|er|ez)|aperçu|vue d'ensemble|en général|dans l'ensemble|globalement)\b",
        r"概要|要約|まとめ|全体|全般|おおまか|傾向|最初から最後|順番で何を|一通り",
    ),
    _compile(
        QueryType.GLOBAL,
        2,
        r"\b(?:list|name|enumerate|describe|outline) (?:all|every|the)\b",
        r"\b(?:what|which) (?:are|were) (?:all|the (?:different|various|possible|available))\b",
        r"\b(?:kinds?|types?|sorts?|categories) of\b",
        r"\bhow (?:do|does|is|are) .+ (?:work|played|organi[sz]ed|structured)\b",
        r"\bwhat all\b|\b(?:in all|all told)\b|\b(?:steps|phases|stages) (?:of|in|make)\b",
        r"\b(?:all|every) (?:the )?\w+s?\b.*\b(?:across|throughout|among)\b",
        r"\b(?:quels|quelles) (?:sont|étaient) (?:tous|toutes|les (?:différent|principa)\w+)\b",
        r"\bcomment (?:se joue|fonctionne|marche)\b|\btous les\b|\btoutes les\b",
        r"一覧|すべて|全て|どのような.*(?:種類|もの)|種類|仕組み|遊び方|流れ",
    ),
)

#: Several questions in one; they count beside any other evidence.
SEVERAL: Final = _compile(
    QueryType.HYBRID,
    2,
    r"\?.+\?",
    r"\b(?:and|or|but|also)\b[^?]{0,20}"
    r"\b(?:what|how|who|where|when|why|which|do|does|did|can|is|are|will)\b",
    r"\b(?:et|ou|mais)\b[^?]{0,20}\b(?:qui|quand|où|pourquoi|comment|combien|est-ce|puis-je)\b",
    r"[？?].+[？?]|か[、。].+か[。？?]?\s*$",
)
#: Forms of a question about one fact. The heaviest counts; half where a subject says more.
QUESTIONS: Final[Sequence[Evidence]] = (
    _compile(
        QueryType.LOCAL,
        2,
        r"^(?:so |and |but |if .+?, )?(?:can|could|may|must|should|do|does|did|is|are|was|will)\b",
        r"\b(?:who|whom|whose|when|where)\b",
        r"\bhow (?:many|much|long|often|far|old|big|high)\b",
        r"\bwhat (?:happens|number|date|year|time|value|size|does .+ mean)\b",
        r"^(?:est-ce que|peut-on|puis-je|dois-je|doit-on|faut-il|a-t-on|ai-je)\b",
        r"\b(?:qui|quand|où|combien)\b",
        r"何(?:個|枚|回|人|点|時|年|日|歳|本|つ)|いくつ|いくら|いつ|どこ|誰|だれ",
        r"(?:ですか|ますか|ませんか|でしょうか|ん?だ?っけ)[?？。]?\s*$|できる[?？]",
    ),
    _compile(
        QueryType.LOCAL,
        1,
        r"\b(?:what|which|why|how)\b",
        r"\b(?:define|definition|meaning)\b",
        r"\b(?:que|quel|quelle|quels|quelles|pourquoi|comment)\b",
        r"何|どの|どう|なぜ|どちら",
    ),
)

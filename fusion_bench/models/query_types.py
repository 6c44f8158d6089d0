"""Types of queries: what a classification holds, a classifier of words, a file of queries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE, type_of
from fusion_bench.errors import DataError
from fusion_bench.io.held_out import read_everything
from fusion_bench.io.json_objects import load_queries, read_objects
from fusion_bench.io.outputs import write_output
from fusion_bench.schema import QueryClassification, QueryType, SearchWeights
from fusion_bench.util.json_text import encode_json_lines


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


#: Text between quotes of any language.
QUOTED: Final = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«\s*([^»]+?)\s*»|「([^」]+)」|『([^』]+)』")
#: An identifier: capitals with digits, such as ``T1059.001``, or capitals alone, such as ``NASA``.
IDENTIFIER: Final = re.compile(r"\b(?:[A-Z]+[-_]?\d[\w.-]*\w|[A-Z]+\d|[A-Z]{2,}|\w+_\w+)\b")
#: Capitalized words in a row, which small words may join.
NAME: Final = re.compile(
    r"\b[A-ZÀ-Þ][\w'’-]*(?:\s+(?:(?:of|the|de|du|des|la|le|and)\s+){0,2}[A-ZÀ-Þ][\w'’-]*)*"
)
#: Words of katakana, with which Japanese writes names.
KATAKANA: Final = re.compile(r"[ァ-ヴー]{3,}(?:・[ァ-ヴー]+)*")
OPENING_WORDS: Final = """
a an the who whom whose what which when where why how can could may must might should shall do
does did is are was were will would has have had if in on at after before during for and or but
so list name describe explain compare summarize tell give i my we you it there please le la les
un une des qui que quoi quel quelle quels quelles quand où pourquoi comment combien est-ce peut
peut-on puis-je dois-je doit-on faut-il si dans sur après avant pour et ou mais donc je nous
donnez donne résumez comparez décrivez expliquez
"""
#: Capitalized at the beginning of a question, and no name.
OPENING: Final = frozenset(OPENING_WORDS.split())


def extract_entities(text: str, known: Collection[str] = ()) -> list[str]:
    """Names in a text, in the order in which they stand; a name inside another is left out.

    Args:
        text: A query.
        known: Names that count wherever they stand, capitals or not.
    """
    spans: list[tuple[int, int, str]] = []
    for name in known:
        exact = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        spans += [(match.start(), match.end(), name) for match in exact.finditer(text)]
    for match in QUOTED.finditer(text):
        spans.append((match.start(), match.end(), next(filter(None, match.groups()))))
    for pattern in (IDENTIFIER, KATAKANA):
        spans += [(m.start(), m.end(), m.group()) for m in pattern.finditer(text)]
    for match in NAME.finditer(text):
        start, words = match.start(), match.group()
        while words and words.split()[0].lower() in OPENING:
            rest = words[len(words.split()[0]) :].lstrip()
            start, words = start + len(words) - len(rest), rest
        if words and words[0].isupper():
            spans.append((start, start + len(words), words))
    chosen: list[tuple[int, int, str]] = []
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or span[0] >= other[1] for other in chosen):
            chosen.append(span)
    return list(dict.fromkeys(name for _, _, name in sorted(chosen)))


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


@dataclass(frozen=True)
class Predictions:
    """What a classifier made of a file of queries.

    Attributes:
        files: The files that were written.
        queries: How many queries there are.
        types: Predicted type → queries.
        confusion: Known type → predicted type → queries; only queries whose type is known.
        agreement: Share of those whose known type, or ``hybrid`` where that is not sure, is the
            predicted one; None without known types.
        failures: Query id → why the classifier gave no answer; such a query is ``hybrid``.
    """

    files: tuple[Path, ...]
    queries: int
    types: dict[str, int]
    confusion: dict[str, dict[str, int]]
    agreement: float | None
    failures: dict[str, str]


@read_everything()
def classify_file(
    path: Path, classifier: Classifier, out: Path, *, records: Path | None = None
) -> Predictions:
    """Classify every query of a file.

    Args:
        path: JSON Lines of queries with ``id`` and ``text``.
        classifier: What classifies.
        out: The same lines with ``predicted_type`` and ``predicted_confidence``.
        records: Where to write the ``QueryClassification`` records, one a line; None = nowhere.

    Raises:
        DataError: A line breaks a rule, or a query has no text.
        FusionBenchError: The classifier cannot be used, or a file cannot be written.
    """
    known = load_queries(path)
    without = next((query.id for query in known.values() if query.text is None), None)
    if without is not None:
        raise DataError(f"{path}: query {without!r} has no 'text': a classifier needs it")
    answers = classifier.classify([query.text or "" for query in known.values()])
    objects = [item for _, item in read_objects(path)]
    lines = [
        {**item, PREDICTED_TYPE: str(answer.classification.type)}
        | {PREDICTED_CONFIDENCE: answer.classification.confidence}
        for item, answer in zip(objects, answers, strict=True)
    ]
    files = [write_output(out, encode_json_lines(lines))]
    if records is not None:
        texts = (f"{answer.classification.to_json()}\n" for answer in answers)
        files.append(write_output(records, "".join(texts).encode(), option="--records"))
    true = {
        query.id: type_of(query.type, query.confidence, tuple(QueryType))
        for query in known.values()
        if query.type is not None
    }
    predicted = {
        name: str(answer.classification.type) for name, answer in zip(known, answers, strict=True)
    }
    equal = sum(predicted[query] == kind for query, kind in true.items())
    failures = {name: each.failure for name, each in zip(known, answers, strict=True)}
    kinds = [str(name) for name in QueryType if name in true.values()]
    return Predictions(
        files=tuple(files),
        queries=len(known),
        types=_count(predicted.values()),
        confusion={
            kind: _count(predicted[query] for query, other in true.items() if other == kind)
            for kind in kinds
        },
        agreement=equal / len(true) if true else None,
        failures={name: failure for name, failure in failures.items() if failure},
    )


def _count(types: Iterable[str]) -> dict[str, int]:
    counts = Counter(types)
    return {str(name): counts[name] for name in QueryType}

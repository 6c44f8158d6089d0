"""Names in a query: quoted, capitalized, identifiers, or known beforehand."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

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

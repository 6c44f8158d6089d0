"""Sentences of Markdown, and what a plain one does not have."""

import re

#: Words that a sentence of a page may have.
MOST_WORDS = 30
#: Pattern → what to write instead.
AVOIDED = {
    r"\b[Ww]hoever\b": "you, or name the person",
    r"\b(says?|said)\b": "prints, reports, shows, states",
    r"\bstands?\b": "is, appears",
    r"\b(that|those) of\b": "repeat the noun",
    r"\bis none\b|\bno other\b|\bnone is\b": "a verb of doing",
    r"(^|[.:] )Where\b[^?]*$": "If",
    r"\b(shall|hence|thus|lest|thereof|wherein|wherever)\b": "a plain word",
    r"\bas it is read\b|\bso it is\b|\bso is\b": "repeat the noun",
    r"\bnumbers of (its|their|your) own\b": "parameters",
}
_BLOCK = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.|>)\s+")
_END = re.compile(r"(?<=[.!?])[\"”)*_]*\s+(?=\S)")
#: Words whose dot ends no sentence.
_SHORT = re.compile(r"\b(e\.g|i\.e|vs|et al|cf|approx|[A-Z])\.(?=\s)")


def list_sentences(page: str) -> list[str]:
    """The sentences of a page without headings; code is one word, a table cell a paragraph.

    Args:
        page: Markdown.
    """
    text = re.sub(r"<!--.*?-->", "", _BLOCK.sub("\n\n", page), flags=re.DOTALL)
    text = re.sub(r"^---\n.*?^---$", "", text, count=1, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]+`", "`x`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [
        sentence
        for paragraph in _split_paragraphs(text)
        for sentence in _END.split(_SHORT.sub(r"\1", paragraph))
        if sentence
    ]


def _split_paragraphs(text: str) -> list[str]:
    """Paragraphs, items of lists and clauses of a table's cells, each in one line."""
    paragraphs = [""]
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            paragraphs += [cell.strip() for cell in re.split(r"(?<!\\)\||; ", line)]
            paragraphs.append("")
        elif not line.strip() or _ITEM.match(line):
            paragraphs.append(_ITEM.sub("", line).strip())
        else:
            paragraphs[-1] = f"{paragraphs[-1]} {line.strip()}".strip()
    return [paragraph for paragraph in paragraphs if re.search(r"\w", paragraph)]


def find_faults(page: str) -> list[str]:
    """What a reader would read twice: long sentences, and words to avoid.

    Args:
        page: Markdown.
    """
    faults = []
    for sentence in list_sentences(page):
        count = len(re.findall(r"\S*\w\S*", sentence))
        if count > MOST_WORDS:
            faults.append(f"{count} words: {sentence}")
        faults += [
            f"{match[0].strip()!r}, better {better}: {sentence}"
            for pattern, better in AVOIDED.items()
            if (match := re.search(pattern, sentence))
        ]
    return faults

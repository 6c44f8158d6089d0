"""Are two texts nearly the same? Every text here is written; none is filled from a template."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

#: Two texts that share more of the shorter one's word sequences are near-duplicates.
LIMIT = 0.25
#: Length of the sequences: words, and characters in Japanese.
WORDS, CHARACTERS = 4, 8


def near_duplicates(texts: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, float]]:
    """Pairs above :data:`LIMIT`, with the share.

    Args:
        texts: Id, text and language of each.
    """
    sequences = {name: _sequences(text, language) for name, text, language in texts}
    holders: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, held in sequences.items():
        for sequence in held:
            holders[sequence].append(name)
    shared = Counter(
        pair for names in holders.values() for pair in itertools.combinations(names, 2)
    )
    shares = (
        (one, other, count / min(len(sequences[one]), len(sequences[other])))
        for (one, other), count in shared.items()
    )
    return [(one, other, round(share, 2)) for one, other, share in shares if share > LIMIT]


def _sequences(text: str, language: str) -> frozenset[tuple[str, ...]]:
    is_japanese = language == "ja"
    units = list("".join(text.lower().split())) if is_japanese else re.findall(r"\w+", text.lower())
    length = CHARACTERS if is_japanese else WORDS
    return frozenset(tuple(units[i : i + length]) for i in range(len(units) - length + 1))

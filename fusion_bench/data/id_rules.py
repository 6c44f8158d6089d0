"""Rules that change document ids, so that lists and judgments written differently meet.

Nothing applies a rule unless the configuration asks for it: :func:`find_rule` only finds the rule
that an error may propose.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from fusion_bench.errors import ConfigError, UnknownNameError

#: Whose ids a rule changes: those looked up, those they are looked up in, or both.
RuleSide: TypeAlias = Literal["ids", "targets", "both"]

#: Rule → what it makes of one id, and how a sentence goes on after "would match". The last ones are
#: followed by a colon and the text to drop.
RULES: Final[Mapping[str, tuple[Callable[[str, str], str], str]]] = {
    "decimal": (lambda name, _: name.removesuffix(".0"), "without the final '.0'"),
    "zeros": (lambda name, _: name.lstrip("0") or name[-1:], "without leading zeros"),
    "lowercase": (lambda name, _: name.lower(), "in lower case"),
    "nfc": (lambda name, _: unicodedata.normalize("NFC", name), "in Unicode form NFC"),
    "slash": (lambda name, _: name.removesuffix("/"), "without the trailing slash"),
    "drop_prefix": (str.removeprefix, "without the prefix {!r}"),
    "drop_suffix": (str.removesuffix, "without the suffix {!r}"),
}
TEXT_RULES: Final = ("drop_prefix", "drop_suffix")
SIMPLE_RULES: Final = tuple(rule for rule in RULES if rule not in TEXT_RULES)
#: All rules, as an error and a help text list them.
KNOWN_RULES: Final = (*SIMPLE_RULES, *(f"{name}:TEXT" for name in TEXT_RULES))
#: Ids among which the best length of a prefix or suffix is found.
_MOST_SAMPLED: Final = 1_000
#: Longest prefix or suffix that is tried.
_LONGEST_TEXT: Final = 200


class RuleMatch(NamedTuple):
    """A rule, and how many ids meet a target once it is applied.

    Attributes:
        rule: As :func:`apply_rule` takes it.
        side: Whose ids it changes.
        matches: How many of the ids meet then.
        total: Of how many.
    """

    rule: str
    side: RuleSide
    matches: int
    total: int


def apply_rule(rule: str, ids: Sequence[str]) -> list[str]:
    """Apply a rule to each id.

    Args:
        rule: One of :data:`KNOWN_RULES`, such as ``decimal`` or ``drop_prefix:doc-``.
        ids: Document ids. Two of them may become one, and an id may become empty.

    Raises:
        ConfigError: The rule is unknown, or lacks its text.

    >>> apply_rule("decimal", ["100.0", "7"])
    ['100', '7']
    >>> apply_rule("drop_prefix:v_", ["v_0", "v_1"])
    ['0', '1']
    """
    name, colon, text = rule.partition(":")
    if name not in RULES or (colon and name in SIMPLE_RULES):
        raise UnknownNameError("rule for ids", rule, KNOWN_RULES)
    if name in TEXT_RULES and not text:
        raise ConfigError(f"rule {name!r} needs the text to drop, such as {name}:doc-")
    change, _ = RULES[name]
    return [change(document, text) for document in ids]


def describe_rule(rule: str) -> str:
    """Say how ids match under a rule: ``without the trailing slash``."""
    name, _, text = rule.partition(":")
    return RULES[name][1].format(text)


def find_rule(ids: Collection[str], targets: Collection[str]) -> RuleMatch | None:
    """Find the rule under which most ids meet a target.

    A rule that would make two ids of one side equal, or one empty, is left out. Of rules that match
    equally many, one that changes the ids comes first, then one that changes the targets.

    Args:
        ids: Ids of a list, those of all its queries one after the other; repeats count.
        targets: Ids that they should meet, such as those of the judged documents.

    Returns:
        The best rule, or None if no rule lets more ids meet than meet already.

    >>> find_rule(["100.0", "7.0"], {"100", "8"})
    RuleMatch(rule='decimal', side='ids', matches=1, total=2)
    """
    listed, distinct, goals = list(ids), list(dict.fromkeys(ids)), list(dict.fromkeys(targets))
    known = set(goals)
    best = None
    most = sum(map(known.__contains__, listed))
    texts: list[tuple[str, RuleSide]] = [
        *((rule, "ids") for rule in _find_common_texts(distinct, goals)),
        *((rule, "targets") for rule in _find_common_texts(goals, distinct)),
    ]
    candidates: list[tuple[str, RuleSide]] = []
    sides: tuple[RuleSide, ...] = ("ids", "targets", "both")
    for side in sides:
        candidates += ((rule, side) for rule in SIMPLE_RULES)
        candidates += (text for text in texts if text[1] == side)
    for rule, side in candidates:
        changed_ids = distinct if side == "targets" else apply_rule(rule, distinct)
        changed_goals = known if side == "ids" else set(apply_rule(rule, goals))
        is_one_to_one = len(set(changed_ids)) == len(distinct) and len(changed_goals) == len(goals)
        if not is_one_to_one or "" in changed_ids or "" in changed_goals:
            continue
        met = {old for old, new in zip(distinct, changed_ids, strict=True) if new in changed_goals}
        matches = sum(map(met.__contains__, listed))
        if matches > most:
            best, most = RuleMatch(rule, side, matches, len(listed)), matches
    return best


def _find_common_texts(ids: Sequence[str], goals: Collection[str]) -> Iterator[str]:
    """The prefix and the suffix common to all ids without which most of them are goals."""
    known = set(goals)
    sample = ids[:: -(-len(ids) // _MOST_SAMPLED) or 1]
    prefix = os.path.commonprefix(ids)[:_LONGEST_TEXT]
    suffix = os.path.commonprefix([name[::-1] for name in ids])[:_LONGEST_TEXT]
    for name, texts in (
        ("drop_prefix", [prefix[:size] for size in range(1, len(prefix) + 1)]),
        ("drop_suffix", [suffix[:size][::-1] for size in range(1, len(suffix) + 1)]),
    ):
        drop, _ = RULES[name]
        counts = [sum(drop(each, text) in known for each in sample) for text in texts]
        if any(counts):
            yield f"{name}:{texts[counts.index(max(counts))]}"

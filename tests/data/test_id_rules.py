"""Rules for ids: what each makes of an id, and which one lets a list meet the judgments."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest

from fusion_bench.data.id_rules import (
    KNOWN_RULES,
    RuleMatch,
    apply_rule,
    describe_rule,
    find_rule,
)
from fusion_bench.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        ("decimal", ["100.0", "1.05", "a.0", "7"], ["100", "1.05", "a", "7"]),
        ("zeros", ["007", "0", "000", "10", "a01"], ["7", "0", "0", "10", "a01"]),
        ("lowercase", ["Doc-A", "é"], ["doc-a", "é"]),
        ("nfc", [unicodedata.normalize("NFD", "café")], ["café"]),
        ("slash", ["https://a.org/x/", "/y"], ["https://a.org/x", "/y"]),
        ("drop_prefix:v_", ["v_0", "w_0"], ["0", "w_0"]),
        ("drop_suffix:#0", ["a#0", "a#00"], ["a", "a#00"]),
        ("drop_prefix:a:b", ["a:bc"], ["c"]),
    ],
)
def test_a_rule_changes_each_id(rule: str, given: list[str], expected: list[str]) -> None:
    assert apply_rule(rule, given) == expected


@pytest.mark.parametrize("rule", ["decimals", "decimal:0", "", "Zeros"])
def test_an_unknown_rule_lists_those_that_are_known(rule: str) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown rule"):
        apply_rule(rule, ["a"])


def test_a_rule_that_drops_a_text_needs_it() -> None:
    with pytest.raises(ConfigError, match="drop_suffix:doc-"):
        apply_rule("drop_suffix", ["a"])


@pytest.mark.parametrize(
    ("ids", "targets", "expected"),
    [
        (["1.0", "2.0", "1.0"], ["1", "2", "3"], RuleMatch("decimal", "ids", 3, 3)),
        (["1", "2"], ["1.0", "2.0"], RuleMatch("decimal", "targets", 2, 2)),
        (["00001", "00020"], ["1", "20"], RuleMatch("zeros", "ids", 2, 2)),
        (["001", "020"], ["01", "0020"], RuleMatch("zeros", "both", 2, 2)),
        (["DOC-A", "DOC-B"], ["doc-a", "doc-b"], RuleMatch("lowercase", "ids", 2, 2)),
        (["DOC-A", "dOC-B"], ["Doc-A", "Doc-B"], RuleMatch("lowercase", "both", 2, 2)),
        (["cafe\u0301"], ["caf\u00e9"], RuleMatch("nfc", "ids", 1, 1)),
        (["caf\u00e9"], ["cafe\u0301"], RuleMatch("nfc", "targets", 1, 1)),
        (["u/a/", "u/b"], ["u/a", "u/b"], RuleMatch("slash", "ids", 2, 2)),
        (["v_10", "v_11"], ["10", "11"], RuleMatch("drop_prefix:v_", "ids", 2, 2)),
        (["10", "11"], ["v_10", "v_11"], RuleMatch("drop_prefix:v_", "targets", 2, 2)),
        (["a.md#0", "b.md#0"], ["a.md", "b.md"], RuleMatch("drop_suffix:#0", "ids", 2, 2)),
        (["a1.0", "b2.0", "c3"], ["a1", "b2"], RuleMatch("decimal", "ids", 2, 3)),
    ],
)
def test_the_rule_that_lets_most_ids_meet_is_found(
    ids: list[str], targets: list[str], expected: RuleMatch
) -> None:
    assert find_rule(ids, targets) == expected


@pytest.mark.parametrize(
    ("ids", "targets"),
    [
        (["a", "b"], ["a", "b"]),  # they meet already
        (["a", "b"], ["x", "y"]),  # no rule helps
        (["01", "1"], ["1", "2"]),  # two ids would become one
        (["A", "B"], ["a", "b", "B", "A"]),  # they meet already, in one of two spellings
        ([], ["a"]),
        (["a"], []),
    ],
)
def test_no_rule_is_proposed_that_does_not_help_or_joins_two_ids(
    ids: Sequence[str], targets: Sequence[str]
) -> None:
    assert find_rule(ids, targets) is None


def test_a_proposed_rule_does_what_it_promises() -> None:
    ids = [f"https://shop.example/item/{n:05}/" for n in range(3_000)]
    targets = [f"https://shop.example/item/{n:05}" for n in range(0, 3_000, 7)]
    found = find_rule(ids, targets)
    assert found == RuleMatch("slash", "ids", len(targets), 3_000)
    assert len(set(apply_rule(found.rule, ids)) & set(targets)) == found.matches


def test_each_rule_has_words() -> None:
    for known in KNOWN_RULES:
        assert describe_rule(known.replace("TEXT", "v_")).split()[0] in {"without", "in"}
    assert describe_rule("drop_prefix:v_") == "without the prefix 'v_'"

"""How numbers, names and lists are shown."""

import math

import pytest
import yaml

from fusion_bench.config.yaml_files import format_compact_yaml
from fusion_bench.data.qrels import UnmatchedId, find_unmatched_ids, format_unmatched_ids
from fusion_bench.data.read_options import NUMBER_CHARACTERS
from fusion_bench.errors import did_you_mean
from fusion_bench.evaluation.explanation import format_apart
from fusion_bench.util.formatting import (
    GREATEST,
    escape_control_chars,
    format_change,
    format_coverage,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    is_decimal,
    is_encodable,
    is_whole,
    parse_whole,
    pluralize,
    wrap_line,
)

NAN = math.nan


def test_control_characters_and_half_surrogate_pairs_are_no_text() -> None:
    assert (
        escape_control_chars("a\nb\x1b[31m\u202e\xa0\udc00é 中")
        == "a\\nb\\x1b[31m\\u202e\\xa0\\udc00é 中"
    )
    assert escape_control_chars(escape_control_chars("a\nb")) == "a\\nb"
    assert is_encodable("plain")
    assert is_encodable("🙂 ü")
    assert not is_encodable("a\udc00")


def test_a_number_and_its_noun_agree() -> None:
    said = [pluralize(n, noun) for n in (0, 1, 1234) for noun in ("query", "rerank list")]
    assert said == [
        *("0 queries", "0 rerank lists"),
        *("1 query", "1 rerank list"),
        *("1,234 queries", "1,234 rerank lists"),
    ]


def test_names_that_are_about_as_near_are_both_suggested() -> None:
    methods = ["rrf", "rrf_v2", "weighted_score"]
    assert did_you_mean("rrf2", methods).endswith(" 'rrf' or 'rrf_v2'?")
    assert did_you_mean("rrf_2", methods).endswith(" mean 'rrf_v2'?")
    assert did_you_mean("borda", methods) == ""
    assert did_you_mean("RRF", ["rrf", "borda"]).endswith(" mean 'rrf'?")


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (None, False, "n/a"),
        (NAN, True, "n/a"),
        (0.0, False, "0.0000"),
        (-0.0, True, "0.0000"),
        (0.5, False, "0.5000"),
        (0.5, True, "+0.5000"),
        (-0.5, True, "-0.5000"),
        (0.12345, False, "0.1235"),
        (0.00004, False, "0.00004"),
        (-0.0000412, True, "-0.00004"),
        (0.0000000123, False, "0.00000001"),
        (1e-12, True, "+0.000000000001"),
        (1e-14, True, "0.0000"),
        (1.0, False, "1.0000"),
        (12.5, False, "12.5000"),
    ],
)
def test_numbers(value: float | None, signed: bool, text: str) -> None:
    assert format_number(value, signed=signed) == text


@pytest.mark.parametrize(
    ("low", "high", "signed", "text"),
    [
        (0.1, 0.2, False, "[0.1000, 0.2000]"),
        (-0.1, 0.2, True, "[-0.1000, +0.2000]"),
        (0.00001, 0.2, True, "[+0.00001, +0.2000]"),
        (None, 0.2, False, "n/a"),
        (0.1, None, False, "n/a"),
        (NAN, 0.2, False, "n/a"),
        (0.1, NAN, False, "n/a"),
    ],
)
def test_intervals(low: float | None, high: float | None, signed: bool, text: str) -> None:
    assert format_interval(low, high, signed=signed) == text


@pytest.mark.parametrize(
    ("p", "alpha", "text"),
    [
        (None, 0.05, "n/a"),
        (NAN, 0.05, "n/a"),
        (1.0, 0.05, "1"),
        (0.99951, 0.05, ">.999"),
        (0.9994, 0.05, ".999"),
        (0.5, 0.05, ".500"),
        (0.0123, 0.05, ".012"),
        (0.001, 0.05, ".001"),
        (0.00099, 0.05, "<.001"),
        (1e-30, 0.05, "<.001"),
        (0.0, 0.05, "<.001"),
        # never across the level …
        (0.05, 0.05, ".050"),
        (0.0496, 0.05, ".0496"),
        (0.04999, 0.05, ".04999"),
        (0.0504, 0.05, ".050"),
        (0.0096, 0.01, ".0096"),
        # … nor to 0
        (0.0007, 0.0005, ".001"),
        (0.0004, 0.0005, ".0004"),
        (0.00049, 0.0005, ".00049"),
        (0.00002, 0.0005, ".00002"),
        (0.0, 0.0005, "0"),  # as it is
    ],
)
def test_p_values(p: float | None, alpha: float, text: str) -> None:
    assert format_p_value(p, alpha=alpha) == text
    unadjusted = text if text == "n/a" else f"{text} (unadjusted)"
    assert format_p_value(p, alpha=alpha, adjusted=False) == unadjusted


@pytest.mark.parametrize("alpha", [0.0005, 0.001, 0.01, 0.05, 0.1, 0.2345])
def test_no_p_is_shown_as_0_or_on_the_other_side_of_the_level(alpha: float) -> None:
    ps = [i / 20_001 for i in range(1, 20_001)]
    ps += [alpha, math.nextafter(alpha, 0), math.nextafter(alpha, 1), alpha * 0.99, alpha * 1.01]
    for p in ps:
        text = format_p_value(p, alpha=alpha)
        if text == "<.001":
            assert p < 0.001 <= alpha
        elif text == ">.999":
            assert p >= 0.9995
        else:
            value = float(text)
            assert value > 0
            assert (value < alpha) == (p < alpha), (p, text)
            assert abs(value - p) <= 0.0005


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (NAN, "n/a"),
        (0.0, "0.0 %"),
        (0.0001, "<0.1 %"),
        (0.0006, "0.1 %"),
        (0.1234, "12.3 %"),
        (1.0, "100.0 %"),
    ],
)
def test_shares(value: float | None, text: str) -> None:
    assert format_percent(value) == text


@pytest.mark.parametrize(("alpha", "text"), [(0.05, "95 %"), (0.1, "90 %"), (0.001, "99.9 %")])
def test_coverage(alpha: float, text: str) -> None:
    assert format_coverage(alpha) == text


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (0.614595, 0.425821, ("0.6146", "0.4258")),
        (0.0325136, 0.0325111, ("0.032514", "0.032511")),
        (0.5, 0.5, ("0.5", "0.5")),
    ],
)
def test_two_numbers_are_told_apart(first: float, second: float, expected: tuple[str, str]) -> None:
    assert format_apart(first, second) == expected


@pytest.mark.parametrize(
    ("difference", "baseline", "expected"),
    [
        (0.1, 0.5, "+20.0 %: "),
        (-0.05, 0.5, "-10.0 %: "),
        (0.1, 0.0, ""),
        (0.1, None, ""),
        (math.nan, 0.5, ""),
    ],
)
def test_a_change_for_people(difference: float, baseline: float | None, expected: str) -> None:
    shown = format_change(difference, baseline, wins=1, losses=2, queries=60)
    assert shown == f"{expected}1 query better, 2 worse of 60"


@pytest.mark.parametrize(
    "text", ["0", "-0", "+5", "05", ".5", "5.", "1e3", "1E-3", "-1.5e+10", "18446744073709551616"]
)
def test_numbers_of_decimal_numbers(text: str) -> None:
    assert is_decimal(text)
    assert NUMBER_CHARACTERS.issuperset(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "-",
            "e5",
            "1e",
            "1e+",
            "1_0",
            "１",
            "٣",
            "0x1",
            "0b1",
            " 1",
            "1 ",
            "1\n",
            "1,5",
        ),
        *("1.2.3", "nan", "inf", "+-1", "1.e.5", "1j", "½", "1\0"),
    ],
)
def test_other_texts(text: str) -> None:
    assert not is_decimal(text)
    assert not is_whole(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("-07", -7), ("+2.0", 2), ("3.", 3), ("4.00", 4), (str(GREATEST), GREATEST)],
)
def test_whole_numbers(text: str, number: int) -> None:
    assert is_whole(text)
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e0", "1.0e1", ".0"])
def test_other_numbers_are_not_whole(text: str) -> None:
    assert is_decimal(text)
    with pytest.raises(ValueError, match="not a whole number"):
        parse_whole(text)


@pytest.mark.parametrize("text", [str(GREATEST + 1), str(-(2**64)), "9" * 5000])
def test_whole_numbers_fit_into_64_bits(text: str) -> None:
    assert not is_whole(text)
    with pytest.raises(OverflowError):
        parse_whole(text)


JUDGED = {f"q{n:02}" for n in range(1, 20)}


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (JUDGED, ()),
        (JUDGED - {"q05"} | {"Q5"}, (("Q5", "q05"),)),
        (JUDGED | {"Q5"}, (("Q5", None),)),  # it has q05 as well, so that was not meant
        (JUDGED - {"q05"} | {"q-05", "a"}, (("q-05", "q05"), ("a", None))),
        (JUDGED | set("zyxw"), (("w", None), ("x", None), ("y", None))),
    ],
)
def test_strangers(returned: set[str], found: tuple[UnmatchedId, ...]) -> None:
    assert find_unmatched_ids(returned, JUDGED) == found


def test_names_that_were_meant_are_named() -> None:
    assert find_unmatched_ids({"turn_31_4"}, {"turn_31_04x", "else"}) == (
        ("turn_31_4", "turn_31_04x"),
    )
    found = (("Q5", "q05"), ("x", None))
    assert format_unmatched_ids(found, 2) == "'Q5' (did you mean 'q05'?), 'x'"
    assert format_unmatched_ids(found, 9) == "'Q5' (did you mean 'q05'?), 'x' and 7 more"


def test_the_innermost_stands_on_one_line_without_aliases() -> None:
    shared = ["bm25", "dense"]
    data = {"a": {"runs": shared}, "b": {"runs": shared}}
    text = format_compact_yaml(data)
    assert text == "a:\n  runs: [bm25, dense]\nb:\n  runs: [bm25, dense]\n"
    assert yaml.safe_load(text) == data


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("one two three", ["one two three"]),
        ("  one two three four", ["  one two three", "    four"]),
        ("longer-than-the-line x", ["longer-than-the-line", "  x"]),
        ("fusion-bench fuse 'a b'", ["fusion-bench fuse 'a b'"]),
        ("Next: fusion-bench a --set b", ["Next: fusion-bench a \\", "  --set b"]),
    ],
)
def test_a_line_is_wrapped_and_a_command_stays_one(line: str, lines: list[str]) -> None:
    assert wrap_line(line, 15) == lines

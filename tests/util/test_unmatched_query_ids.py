"""Query ids gone wrong: named, and the judged one that was meant beside them."""

from __future__ import annotations

import pytest

from fusion_bench.data.qrels import UnmatchedId, find_unmatched_ids, format_unmatched_ids

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


def test_a_slip_of_a_letter_is_near() -> None:
    assert find_unmatched_ids({"turn_31_4"}, {"turn_31_04x", "else"}) == (
        ("turn_31_4", "turn_31_04x"),
    )


def test_they_are_named_with_what_was_meant() -> None:
    found = (("Q5", "q05"), ("x", None))
    assert format_unmatched_ids(found, 2) == "'Q5' (did you mean 'q05'?), 'x'"
    assert format_unmatched_ids(found, 9) == "'Q5' (did you mean 'q05'?), 'x' and 7 more"

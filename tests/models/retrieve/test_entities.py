from __future__ import annotations

import math

import pytest

from fusion_bench.models.retrievers.graph import EntityLinker

NAMES = {
    "t1": "Scheduled Task",
    "t2": "Process Discovery",
    "t3": "Account Discovery",
    "t4": "The of",
}


def weight(holders: int) -> float:
    return math.log(1 + len(NAMES) / holders)


def test_coverage_is_the_share_of_the_names_weight() -> None:
    [row] = EntityLinker(NAMES).coverage(["discovery of accounts and ACCOUNTS"])
    known, rare = weight(2), weight(1)
    assert row.tolist() == pytest.approx([0, known / (known + rare), 1, 0])


def test_seeds_weigh_by_sharpened_coverage_and_by_how_telling_the_name_is() -> None:
    linker = EntityLinker(NAMES, threshold=0.4, sharpness=3)
    whole = weight(1) + weight(2)
    partial = (weight(2) / whole) ** 3 * whole
    [row] = linker.seeds(["account discovery"])
    assert row[2] == pytest.approx(whole)
    assert row[1] == (pytest.approx(partial) if weight(2) / whole >= 0.4 else 0)
    assert linker.entities == ("t1", "t2", "t3", "t4")


def test_half_a_name_counts_from_the_threshold_on() -> None:
    assert EntityLinker(NAMES, threshold=0.5).seeds(["task"])[0, 0] > 0
    assert EntityLinker(NAMES, threshold=0.51).seeds(["task"])[0, 0] == 0


@pytest.mark.parametrize("text", ["", "the of", "nothing known"])
def test_a_text_that_names_nothing_has_no_seed(text: str) -> None:
    assert not EntityLinker(NAMES).seeds([text]).any()


def test_no_text_gives_no_row() -> None:
    assert EntityLinker(NAMES).seeds([]).shape == (0, 4)

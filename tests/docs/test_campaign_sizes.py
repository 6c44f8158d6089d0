"""The table of docs/campaign.md is what the rule gives."""

import re

import numpy as np

from fusion_bench.campaign.decision import detectable_gain, phase_share
from tests.docs.printed import ROOT

#: Standard deviation of a difference, per group.
SD = 0.2


def describe_gain(groups: int, asks: int) -> str:
    share = phase_share(1, ships=1, asks=asks, level=0.05)
    gain = detectable_gain(np.array([-SD, SD] * 50), queries=groups, share=share)
    return "none" if gain is None else f"{gain:.3f}".removeprefix("0")


def test_the_table_of_groups_and_asks_is_computed_from_the_rule() -> None:
    page = (ROOT / "docs" / "campaign.md").read_text(encoding="utf-8")
    section = page.partition("## How many asks")[2].partition("\n## ")[0]
    head, _, *rows = re.findall(r"^\|.*$", section, re.MULTILINE)
    asks = [int(each.replace(",", "")) for each in re.findall(r"([\d,]+) asks", head)]
    assert asks == [20, 100, 1000]
    assert len(rows) == 7
    for row in rows:
        groups, *gains = (cell.strip() for cell in row.strip("|").split("|"))
        assert gains == [describe_gain(int(groups.replace(",", "")), count) for count in asks]

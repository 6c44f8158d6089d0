"""The page of limits has the limits that settings are held to."""

from __future__ import annotations

import re
from pathlib import Path

from fusion_bench.config import models

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "performance.md"


def test_the_page_has_every_limit() -> None:
    _, _, table = PAGE.read_text(encoding="utf-8").partition("## Limits of settings")
    stated = {
        int(text.replace(",", "")) for text in re.findall(r"\| ([\d,]+) \|$", table, re.MULTILINE)
    }
    assert stated == {value for name, value in vars(models).items() if name.startswith("MOST_")}
    assert len(re.findall(r"\| [\d,]+ \|$", table, re.MULTILINE)) == 6

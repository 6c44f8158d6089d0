"""Puts measured tables into docs/tuning.md, between the markers that bear their name."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["put"]

PAGE = Path(__file__).parent.parent / "docs" / "tuning.md"


def put(name: str, table: str) -> None:
    """Replace what stands between ``<!-- name -->`` and ``<!-- /name -->``."""
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    changed, count = pattern.subn(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text)
    if count != 1:
        raise SystemExit(f"{PAGE}: needs one pair of markers named {name}, found {count}")
    PAGE.write_text(changed, encoding="utf-8")

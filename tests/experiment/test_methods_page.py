"""The table of methods that people read names every method there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from docs.website.page import list_pages
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.methods.blend import blends
from fusion_bench.methods.fuse import fusions
from fusion_bench.methods.normalize import normalizers

ROOT = Path(__file__).parent.parent.parent
DOCS = list_pages()
PAGES = [ROOT / "README.md", *DOCS]


def listed_methods(page: Path, kind: str) -> list[str]:
    """Names in the second column of a page's rows that begin with the kind."""
    rows = re.findall(rf"^\| {kind} \|([^|]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"`([^`]+)`", "".join(rows))


@pytest.mark.parametrize(
    ("kind", "registry"), [("fusion", fusions), ("blend", blends), ("normalize", normalizers)]
)
def test_one_page_lists_every_method_once(kind: str, registry: MethodRegistry[Any]) -> None:
    [(page, names)] = [
        (page.name, names) for page in PAGES if (names := listed_methods(page, kind))
    ]
    wanted = sorted(registry.load_built_in())
    assert sorted(names) == wanted, (
        f"the table of methods in {page}: rows '| {kind} | `NAME` | …' must name every method "
        "of 'fusion-bench methods' once"
    )

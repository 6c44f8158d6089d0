"""Findings of axe-core, https://github.com/dequelabs/axe-core, that would keep somebody out."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

GRAVE = {"serious", "critical"}


@cache
def _axe_script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def grave_findings(page: Page) -> list[str]:
    """The rules that a page breaks seriously or critically, each with its first elements."""
    page.evaluate(_axe_script())
    result: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: "
        + "; ".join(f"{node['html'][:200]} {node['failureSummary']}" for node in rule["nodes"][:3])
        for rule in result["violations"]
        if rule["impact"] in GRAVE
    ]

"""Findings of axe-core, https://github.com/dequelabs/axe-core, that would keep somebody out."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tests.browser.observed_page import Scheme

if TYPE_CHECKING:
    from playwright.sync_api import Page

GRAVE = {"serious", "critical"}
#: All rules in light; in dark, the one that other colors can break.
RULES: dict[Scheme, tuple[str, ...]] = {"light": (), "dark": ("color-contrast",)}


@cache
def _axe_script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def grave_findings(page: Page, *rules: str) -> list[str]:
    """The rules that a page breaks seriously or critically, each with its first elements."""
    page.evaluate(_axe_script())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    result: dict[str, Any] = page.evaluate("options => axe.run(options)", options)
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: "
        + "; ".join(f"{node['html'][:200]} {node['failureSummary']}" for node in rule["nodes"][:3])
        for rule in result["violations"]
        if rule["impact"] in GRAVE
    ]

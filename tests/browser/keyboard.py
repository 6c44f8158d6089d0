"""What one reaches by the Tab key alone, and whether one sees where one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: What can take the focus, by the rules of HTML.
FOCUSABLE = "a[href], button, input, select, summary, textarea, [tabindex='0']"
VISIBLE_FOCUSABLE = f"""
[...document.querySelectorAll("{FOCUSABLE}")].filter((node) => node.checkVisibility(
  {{visibilityProperty: true}}) && !node.disabled)
"""
#: Marks the element with the focus; null at the page's end, else whether one sees that it has it.
VISIT = """
() => {
  const node = document.activeElement;
  if (node === document.body || node.visited) return null;
  node.visited = true;
  const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(node);
  return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
}
"""


def walk_by_tab(page: Page) -> tuple[list[bool], list[str]]:
    """Walk from the first link over the whole page.

    Returns:
        Of each element that took the focus whether this shows; and the elements that one can see
        and did not reach.
    """
    visible = []
    page.locator(".skip").focus()
    for key in ("Tab", "Shift+Tab"):  # a focus that keys have moved is shown
        page.keyboard.press(key)
    while (is_visible := page.evaluate(VISIT)) is not None:
        visible.append(is_visible)
        page.keyboard.press("Tab")
    missed: list[str] = page.evaluate(
        f"{VISIBLE_FOCUSABLE}.filter((node) => !node.visited).map((node) => node.outerHTML)"
    )
    return visible, missed

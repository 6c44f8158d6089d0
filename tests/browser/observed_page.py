"""A page in a real browser, and whatever it did that a page of ours must not do.

A page of ours asks no other host for anything, opens no dialog, prints no error and breaks no rule
of its Content-Security-Policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

#: Nobody waits longer for a condition; a slow machine needs a part of it.
LIMIT_MS = 120_000
#: These never leave the page.
INNER_SCHEMES = ("data:", "blob:", "about:")
WATCH_POLICY = """
window.policyViolations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.policyViolations.push(`${event.effectiveDirective}: ${event.blockedURI}`);
});
"""

THREE_FRAMES = """async () => {
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
}"""

Scheme = Literal["light", "dark"]


@dataclass
class ObservedPage:
    """A page and what was observed of it."""

    page: Page
    allowed: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        blocked: list[str] = self.page.evaluate("window.policyViolations")
        return blocked

    def problems(self) -> list[str]:
        return [
            *(f"request: {address}" for address in self.requests),
            *(f"error: {text}" for text in self.errors),
            *(f"dialog: {text}" for text in self.dialogs),
            *(f"policy: {text}" for text in self.violations()),
        ]

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size, and wait until the page is drawn for it.

        A page hears of it in the first frame, and draws in the second.
        """
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function("width => innerWidth === width", arg=width)
        self.page.evaluate(THREE_FRAMES)

    def overflow(self) -> float:
        width: float = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width

    def _hear_request(self, request: Request) -> None:
        if not request.url.startswith((self.allowed, *INNER_SCHEMES)):
            self.requests.append(request.url)

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _hear_dialog(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


def observe(
    browser: Browser,
    url: str,
    *,
    width: int = 1200,
    height: int = 900,
    scheme: Scheme = "light",
    allowed: str | None = None,
    script: str = "",
) -> ObservedPage:
    """Open a page in a context of its own, with every observer in place before it loads."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(LIMIT_MS)
    context.add_init_script(WATCH_POLICY)
    context.add_init_script(script)
    page = context.new_page()
    observed = ObservedPage(page, allowed or url)
    page.on("request", observed._hear_request)
    page.on("console", observed._hear_console)
    page.on("pageerror", lambda error: observed.errors.append(str(error)))
    page.on("dialog", observed._hear_dialog)
    page.goto(url)
    return observed

"""What the built pages load and link to: nothing is loaded from elsewhere, every link arrives."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

#: Attributes whose address a browser fetches by itself.
_LOADED = {"src", "srcset", "data", "poster"}
#: Elements whose ``href`` it fetches.
_LOADERS = {"link", "image", "use"}
_ADDRESS = re.compile(r"^(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
#: In a style: ``url(https://…)``, ``@import "//…"``.
_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class _Page(HTMLParser):
    """Addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort the attributes of an element."""
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in _LOADED or (name == "href" and tag in _LOADERS):
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "style":
                self.loaded += _STYLE.findall(value)


def check_html(folder: Path) -> list[str]:
    """Problems of a built site, one line each; empty = there are none.

    Args:
        folder: Where its pages stand.
    """
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(folder).as_posix()] = page
    problems = [
        f"{style.relative_to(folder)}: loads {address}"
        for style in sorted(folder.rglob("*.css"))
        for address in _STYLE.findall(style.read_text(encoding="utf-8"))
    ]
    for name, page in pages.items():
        problems += [f"{name}: loads {item}" for item in page.loaded if _ADDRESS.match(item)]
        problems += [
            f"{name}: leads nowhere: {link}"
            for link in dict.fromkeys([*page.links, *page.loaded])
            if not _arrives(link, name, pages, folder)
        ]
    return problems


def _arrives(link: str, name: str, pages: Mapping[str, _Page], folder: Path) -> bool:
    """Whether a link inside the site leads to a file, and to an anchor in it."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", link, re.IGNORECASE):
        return True
    path, _, anchor = unquote(link).partition("#")
    path = path.partition("?")[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    if target not in pages:
        return (folder / target).is_file()
    return not anchor or anchor in pages[target].anchors

"""Reads a page as a browser does, and opens its data."""

import base64
import gzip
import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class ParsedPage(HTMLParser):
    """Elements and texts of a page.

    Attributes:
        tags: Every element with its attributes.
        texts: By element, the texts that stand directly in it.
    """

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "input", "img", "link", "br"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    @property
    def text(self) -> str:
        shown = (texts for tag, texts in self.texts.items() if tag not in {"script", "style"})
        return "\n".join(text for texts in shown for text in texts)


def parse_page(html: str) -> ParsedPage:
    page = ParsedPage()
    page.feed(html)
    page.close()
    assert not page._open
    return page


def page_data(html: str) -> dict[str, Any]:
    """What the block of data holds."""
    (packed,) = (
        text for text in parse_page(html).texts["script"] if not text.lstrip().startswith("(() =>")
    )
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return data

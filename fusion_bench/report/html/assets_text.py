"""The script and the style of a page, each as one text with its hash.

The modules in ``assets/js`` are ordinary ES modules. A page that is opened from disk can load none,
so they are joined into one script: each becomes a function that returns what it exports, after the
modules that it imports.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

#: A whole statement, on one line or several.
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|const|class|let) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Asset:
    """A text that stands inline in a page.

    Attributes:
        text: As it stands between the tags.
        source: What allows it in a Content-Security-Policy: ``'sha256-…'``.
    """

    text: str

    @property
    def source(self) -> str:
        """The hash that a browser computes of it."""
        digest = hashlib.sha256(self.text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"


def read_asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return (files("fusion_bench.report.html") / "assets" / name).read_text(encoding="utf-8")


@cache
def page_style() -> Asset:
    """The style of every page."""
    return Asset(read_asset("page.css"))


@cache
def page_script(entry: str = "main") -> Asset:
    """A module and all that it imports, as one script in strict mode."""
    texts: dict[str, str] = {}
    _add_module(entry, texts)
    return Asset(f'(() => {{\n"use strict";\n{"".join(texts.values())}}})();\n')


def _add_module(name: str, texts: dict[str, str]) -> None:
    """Add a module as a function, after those that it imports."""
    source = read_asset(f"js/{name}.js")
    for _, imported in IMPORT.findall(source):
        if imported not in texts:
            _add_module(imported, texts)
    exported = ", ".join(word for _, word in EXPORT.findall(source))
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(r"const \1 = \2_module;\n", source))
    texts[name] = f"const {name}_module = (() => {{\n{body}return {{ {exported} }};\n}})();\n"

"""A page for a browser, for people who work in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

from fusion_bench.util.files.atomic_files import write_atomic

#: In CSS pixels; the page scrolls inside.
HEIGHT: Final = 720


@dataclass(frozen=True, repr=False)
class HtmlPage:
    """One self-contained page; a notebook shows it inline.

    Attributes:
        name: What it is about.
        html: The whole document.
    """

    name: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all.

        Args:
            path: Where to; its folder is made where it is missing.

        Raises:
            FusionBenchError: The file cannot be written.
        """
        return write_atomic(Path(path), self.html.encode())

    def __repr__(self) -> str:
        return f"HtmlPage({self.name!r}, {len(self.html.encode()) / 1e6:.2f} MB)"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its script reaches nothing of the notebook."""
        title, document = escape(self.name), escape(self.html)
        return (
            f'<iframe title="{title}" sandbox="allow-scripts" width="100%" height="{HEIGHT}" '
            f'style="border: 1px solid #8888" srcdoc="{document}"></iframe>'
        )

"""What the site is built from: pages and files by their place in Sphinx's source folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

#: The repository.
ROOT = Path(__file__).parents[2]
#: Columns of a line of YAML; a longer mapping is broken into lines.
LONGEST_LINE = 80


@dataclass(frozen=True)
class Page:
    """One Markdown page.

    Attributes:
        path: Its place in the source folder, ending in ``.md``.
        text: Its Markdown.
    """

    path: str
    text: str

    @property
    def name(self) -> str:
        """The path without the suffix: what a table of contents lists."""
        return self.path.removesuffix(".md")


def list_pages() -> list[Path]:
    """The repository's own pages of ``docs``: for users, reference, studies."""
    docs = ROOT / "docs"
    folders = (docs, docs / "reference", docs / "studies")
    return sorted(path for folder in folders for path in folder.glob("*.md"))


def format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a pipe or a line break in a cell does no harm."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_format_cell, cells))} |" for cells in lines) + "\n"


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def format_code(text: str, language: str = "text") -> str:
    """A fenced block."""
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def format_contents(names: Iterable[str], *, caption: str = "", is_hidden: bool = False) -> str:
    """A table of contents of these pages, one level deep."""
    options = [":maxdepth: 1"]
    options += [f":caption: {caption}"] if caption else []
    options += [":hidden:"] if is_hidden else []
    return "\n".join(["```{toctree}", *options, "", *names, "```", ""])


def format_yaml(data: Mapping[str, Any], *, block_levels: int = 2) -> str:
    """YAML as people write it: mappings in lines down to a level, in braces below it."""
    return "".join(_format_lines(data, "", block_levels))


def _format_lines(data: Mapping[str, Any], indent: str, levels: int) -> list[str]:
    lines = []
    for key, value in data.items():
        line = f"{indent}{format_flow(key)}: {format_flow(value)}\n"
        if isinstance(value, Mapping) and value and (levels > 0 or len(line) > LONGEST_LINE):
            lines.append(f"{indent}{format_flow(key)}:\n")
            lines += _format_lines(value, f"{indent}  ", levels - 1)
        else:
            lines.append(line)
    return lines


def format_flow(value: object) -> str:
    """A value as YAML in one line."""
    if isinstance(value, Mapping):
        entries = (f"{format_flow(key)}: {format_flow(item)}" for key, item in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(format_flow, value))}]"
    if isinstance(value, str):
        is_plain = re.fullmatch(r"\w[\w .@()/+-]*", value) and yaml.safe_load(value) == value
        return value if is_plain else json.dumps(value)
    return json.dumps(value)

"""Links of the repository's Markdown, as links of the site; what leads nowhere is an error."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from docs.website.page import ROOT
from docs.website.sections import replace_outside_code

#: ``[text](target)`` and ``![text](target)``; the text may hold code, but no brackets.
_LINK = re.compile(r"(?P<bang>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^()\s]+)\)")
#: Where files that are no pages go.
FILES = "files"


@dataclass
class Links:
    """Where each file of the repository stands on the site.

    Attributes:
        pages: Path in the repository → path in Sphinx's source folder.
        anchors: The same and an anchor, ``docs/reference/lint.md#no-effect`` → a page of its own.
        files: Files that pages link to, by path in the repository, filled by :meth:`rewrite`.
        broken: ``page: target`` of each link that leads to no file, filled likewise.
    """

    pages: Mapping[str, str]
    anchors: Mapping[str, str]
    files: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def rewrite(self, text: str, origin: str, place: str) -> str:
        """The Markdown of a page with the site's links.

        Args:
            text: Markdown whose links are relative to ``origin``.
            origin: Path of its file in the repository.
            place: Path of the page in Sphinx's source folder.
        """

        def replace(match: re.Match[str]) -> str:
            target = self._resolve(match["target"], origin, place)
            return f"{match['bang']}[{match['text']}]({target})"

        return replace_outside_code(_LINK, replace, text)

    def _resolve(self, target: str, origin: str, place: str) -> str:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return target
        path, _, anchor = target.partition("#")
        file = (
            posixpath.normpath(posixpath.join(posixpath.dirname(origin), path)) if path else origin
        )
        if anchor and (page := self.anchors.get(f"{file}#{anchor}")):
            return _relative(page, place)
        if page := self.pages.get(file):
            suffix = f"#{anchor}" if anchor else ""
            return f"{_relative(page, place) if path else ''}{suffix}"
        if not (ROOT / file).is_file():
            self.broken.append(f"{origin}: {target}")
            return target
        self.files.add(file)
        return _relative(f"{FILES}/{file}", place)


def _relative(target: str, place: str) -> str:
    """The path from one file of the source folder to another."""
    return posixpath.relpath(target, posixpath.dirname(place) or ".")

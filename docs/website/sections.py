"""A page in parts: what stands before its second-level headings, and what stands below each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

#: A fenced block, or a heading.
_BLOCK = re.compile(r"^(```+).*?^\1[ ]*$|^(#{1,6}) ([^\n]+)$", re.MULTILINE | re.DOTALL)


def split_sections(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first second-level heading, and title → text of each section."""
    starts = [match for match in _BLOCK.finditer(text) if match[2] == "##"]
    if not starts:
        return text, {}
    ends = [match.start() for match in starts[1:]] + [len(text)]
    sections = {
        match[3].strip(): text[match.end() : end].strip("\n") + "\n"
        for match, end in zip(starts, ends, strict=True)
    }
    return text[: starts[0].start()], sections


def raise_headings(text: str) -> str:
    """The same with every heading one level higher; code is left alone."""
    return _BLOCK.sub(lambda match: match[0][1:] if match[2] else match[0], text)


def replace_outside_code(
    pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str], text: str
) -> str:
    """``re.sub`` that leaves fenced blocks and code spans alone."""
    code = r"(?P<code>^(?P<fence>```+).*?^(?P=fence)[ ]*$|(?P<tick>`+)[^`]+(?P=tick))"
    either = re.compile(f"{code}|(?P<rest>{pattern.pattern})", re.MULTILINE | re.DOTALL)

    def replace(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        inner = pattern.match(match["rest"])
        assert inner is not None  # noqa: S101 - the same pattern
        return replacement(inner)

    return either.sub(replace, text)


def slugify(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    kept = re.sub(r"[^\w\- ]", "", title.lower().replace("`", ""))
    return kept.strip().replace(" ", "-")


def slugs_to_pages(pages: Mapping[str, str]) -> dict[str, str]:
    """Anchor → path, of title → path."""
    return {slugify(title): path for title, path in pages.items()}

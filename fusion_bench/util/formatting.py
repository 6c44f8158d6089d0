"""Text that can be written to a file, and shown without doing anything."""

from __future__ import annotations

__all__ = ["counted", "is_text", "shown"]


def is_text(value: str) -> bool:
    """Whether a string can be written to a file: an escape may leave half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def shown(text: str) -> str:
    r"""A name as it is, but for control characters, which appear as ``\n`` or ``\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, noun: str) -> str:
    """A number with its noun: ``1 query``, ``1,234 queries``, ``0 lists``."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun}"

"""Lists that are an engine's final answer, and no source of a fusion."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

#: Role of such a list: it may be a system alone, and no fusion takes it as one of several sources.
FINAL_ROLE: Final = "final"


def drop_final(names: Sequence[str], roles: Sequence[Collection[str]]) -> list[str]:
    """The lists that are sources; all of them where none is.

    Args:
        names: Of the lists.
        roles: Of each of them.
    """
    sources = [name for name, of in zip(names, roles, strict=True) if FINAL_ROLE not in of]
    return sources or list(names)

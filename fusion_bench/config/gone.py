"""What earlier versions had: commands, options and keys, and what takes the place of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: The last version that had what :data:`GONE` lists.
LAST_VERSION: Final = "0.1.0"
_POLICIES: Final = "it was not shown to pay; use by_query_type, by_intent or weights_by_type"
#: Command, ``COMMAND --option`` or ``key:`` → what to use instead.
GONE: Final[Mapping[str, str]] = {
    "policies": f"{_POLICIES}, and compare them with eval",
    "policy:": f"{_POLICIES} of the system, or write a fusion in Python",
}


def describe_gone(name: str) -> str:
    """One line that names what is gone, the last version that had it, and what to use instead.

    Args:
        name: An entry of :data:`GONE`.
    """
    return f"{name} was removed after version {LAST_VERSION}: {GONE[name]}"

"""What is shown of a text that a server wrote: error pages, model names, log records."""

from __future__ import annotations

import logging
from typing import Final

from fusion_bench.util.api_key import ApiKey

#: Most characters of a message or a name that are shown.
MAX_SHOWN: Final = 200
#: Characters that are looked through for the key; a server writes more only to hide it.
MAX_CHECKED: Final = 4_000
#: Stands in place of a text that may hold the key.
NOT_SHOWN: Final = "(not shown: it resembles the API key)"
#: The loggers of httpx that repeat what a server wrote.
_LOGGERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")


def show_text(text: str, key: ApiKey | None) -> str | None:
    """A server's text on one line: letters, digits and ASCII marks, and not too long.

    Args:
        text: The text.
        key: The key that must not be shown; None = the server got none.

    Returns:
        The text; None where it resembles the key.
    """
    checked = text[:MAX_CHECKED]
    if key is not None and key.matcher.is_shown_in(checked):
        return None
    allowed = "".join(
        c if c.isalnum() or (c.isascii() and c.isprintable()) else " " for c in checked
    )
    line = " ".join(allowed.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 3]}..."


class LogGuard(logging.Filter):
    """Keeps a key out of the records of httpx's loggers, from ``install`` to ``remove``.

    At level ``DEBUG`` these repeat a response's headers, at ``INFO`` the reason of its status.

    Args:
        key: The key; None = there is none.
    """

    def __init__(self, key: ApiKey | None) -> None:
        super().__init__()
        self._key = key

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace a message that resembles the key; no record is dropped."""
        if self._key is not None and self._key.matcher.is_shown_in(record.getMessage()):
            record.msg, record.args, record.exc_info = NOT_SHOWN, (), None
        return True

    def install(self) -> None:
        """Begin to look at the records."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """Look at no further record."""
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self)

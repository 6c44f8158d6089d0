"""What is shown of a text that a server wrote: error pages, model names, log records."""

from __future__ import annotations

import logging
from typing import Any, Final

from fusion_bench.util.api_key import ApiKey
from fusion_bench.util.secret_matcher import REDACTED

#: Most characters of a message or a name that are shown.
MAX_SHOWN: Final = 200
#: Characters that are looked through for the key; a server writes more only to hide it.
MAX_CHECKED: Final = 4_000
#: Stands in place of a text that may hold the key.
NOT_SHOWN: Final = "(not shown: it resembles the API key)"
#: Stands before what was hidden in an answer; a character that no text holds (Unicode 23.7).
MARK: Final = "\ufdd0"
HIDDEN: Final = f"{MARK}{REDACTED}"
#: Stands in place of every text of an answer where the key is short.
NOT_KEPT: Final = (
    "(not kept: the API key has fewer than 8 characters, and might stand in any text; use a longer "
    "one, or key: null where the server needs none)"
)
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
    if key is not None and (MARK in checked or key.is_shown_in(checked)):
        return None
    allowed = "".join(
        c if c.isalnum() or (c.isascii() and c.isprintable()) else " " for c in checked
    )
    line = " ".join(allowed.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 3]}..."


def hide_key(data: Any, key: ApiKey | None) -> Any:  # noqa: ANN401 - JSON
    """A JSON value without the key: every text, name of a field and whole number that shows it.

    What is hidden leaves :data:`MARK`, so that :func:`hidden_reason` finds it. Double encodings and
    compressed copies are not found.

    Args:
        data: An answer, as it was parsed.
        key: The key that the server got; None = none.
    """
    if key is None or not (key.is_short or key.matcher.is_kept_in("\n".join(_list_texts(data)))):
        return data  # one look at all texts: most answers show nothing
    return _hide_texts(data, key)


def hidden_reason(text: object) -> str | None:
    """Why a text of an answer is not what the server sent; None = it is."""
    if not isinstance(text, str) or MARK not in text:
        return None
    return NOT_KEPT if NOT_KEPT in text else "it shows the API key, or eight characters of it"


def _list_texts(data: Any) -> list[str]:  # noqa: ANN401 - JSON
    texts: list[str] = []
    values = [data]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            texts.extend(value)
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)
        elif isinstance(value, str | int):
            texts.append(str(value))
    return texts


def _hide_texts(data: Any, key: ApiKey) -> Any:  # noqa: ANN401 - JSON
    if isinstance(data, dict):
        return {_hide_text(name, key): _hide_texts(value, key) for name, value in data.items()}
    if isinstance(data, list):
        return [_hide_texts(value, key) for value in data]
    if isinstance(data, str) and key.is_short:
        return f"{MARK}{NOT_KEPT}"
    if isinstance(data, str):
        return _hide_text(data, key)
    is_shown = isinstance(data, int) and key.matcher.is_kept_in(str(data))
    return HIDDEN if is_shown else data


def _hide_text(text: str, key: ApiKey) -> str:
    return (
        key.matcher.redact_text(text).replace(REDACTED, HIDDEN)
        if key.matcher.is_kept_in(text)
        else text
    )


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
        if self._key is not None and self._key.is_shown_in(record.getMessage()):
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

"""The address of a database or a cluster as it may be shown: without user, password and options."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path
from typing import Final

from fusion_bench.util.secret_matcher import SecretMatcher

#: An address that can be read in one way only. A raw ``@``, ``/`` or ``?`` in a password makes
#: what follows look like a host, a database or an option.
_ADDRESS: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9_]*(?:\+[a-z0-9_]+)?)://"
    r"(?:(?P<login>[^@/?#\s]*)@)?"
    r"(?P<place>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._ -]*)?)"
    r"(?:\?(?P<options>[^@]*))?"
)
#: Options whose value is no secret.
_OPEN_OPTIONS: Final = {"user", "host", "port", "dbname", "sslmode", "connect_timeout"}
_FILE: Final = re.compile(r"(?P<scheme>sqlite(?:\+pysqlite)?):///(?P<place>[^?]*)(?:\?.*)?")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9_]{0,20}(?:\+[a-z0-9_]{1,20})?(?=://)")
NOT_SHOWN: Final = "(the message is not shown: it may hold the password)"


def show_address(url: str) -> str:
    """Scheme, host, port and database of an address; the scheme alone where it can be misread.

    A word without a scheme may be the password itself, and is not shown.
    """
    file = _FILE.fullmatch(url)
    if file is not None:
        return f"{file['scheme']}:///{file['place']}"
    address = _ADDRESS.fullmatch(url)
    if address is not None:
        return f"{address['scheme']}://{address['place']}"
    scheme = _SCHEME.match(url)
    return "(not shown)" if scheme is None else f"{scheme[0]}://…"


def find_database_file(url: str) -> Path | None:
    """The file of an SQLite address; None = another database, one in memory, or a URI."""
    file = _FILE.fullmatch(url)
    place = "" if file is None else file["place"]
    is_path = bool(place) and place != ":memory:" and not place.startswith("file:")
    return Path(place) if is_path else None


def is_in_memory(url: str) -> bool:
    """Whether an SQLite database is in memory, so that it ends with its connection."""
    is_file = find_database_file(url) is not None or (":///file:" in url and "memory" not in url)
    return url.startswith("sqlite") and "://" in url and not is_file


def show_reason(url: str, reason: str) -> str:
    """The first line of a driver's message, unless it may show a part of the password."""
    reason = reason.replace(url, show_address(url))
    if _FILE.fullmatch(url):
        return reason
    address = _ADDRESS.fullmatch(url)
    if address is None and re.search("[@?]", url):
        return NOT_SHOWN
    secrets = {url}
    if address is not None:
        _, _, password = (address["login"] or "").partition(":")
        secrets = {password, *_read_options(address["options"] or "")}
    forms = {form for secret in secrets for form in (secret, urllib.parse.unquote_plus(secret))}
    is_shown = any(SecretMatcher(form).is_shown_in(reason) for form in forms if form)
    return NOT_SHOWN if is_shown else reason


def _read_options(options: str) -> set[str]:
    """The values of options that may be secret, as they are written."""
    pairs = (option.partition("=") for option in re.split("[&;]", options))
    return {value or name for name, _, value in pairs if name not in _OPEN_OPTIONS}

"""SQLite files that keep answers: each is committed at once, with a digest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fusion_bench.errors import DataError
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from fusion_bench.util.files import check_regular, explain_error

#: Seconds that one process waits for another's write.
WRITE_TIMEOUT: Final = 30.0


def open_database(path: Path | None) -> sqlite3.Connection:
    """A database whose commits outlive a power cut; its folder is made if need be.

    Args:
        path: Its file, created if missing; None = in memory.

    Raises:
        sqlite3.Error: It is no database.
        OSError: It is no ordinary file.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_regular(path)
    database = sqlite3.connect(
        path or ":memory:", timeout=WRITE_TIMEOUT, isolation_level="IMMEDIATE"
    )
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


@contextmanager
def wrap_database_errors(where: str, what: str) -> Iterator[None]:
    """Turn an error of a database into one of ours.

    Args:
        where: Its file.
        what: What it should be: ``score store``.

    Raises:
        DataError: The database, or its file, cannot be used.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DataError(f"{where}: not a usable {what}: {explain_error(error)}") from None


def digest_value(key: str, value: Mapping[str, Any]) -> str:
    """A value as JSON with a digest of itself and its key."""
    return add_line_digest(json.dumps(dict(value)), key)


def parse_digested(key: str, value: object) -> dict[str, Any] | None:
    """What :func:`digest_value` was given; None where the value is not as it was written."""
    text = strip_line_digest(value, key) if isinstance(value, str) else None
    try:
        record = None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        record = None
    return record if isinstance(record, dict) else None

"""The answers of an unfinished pull, in SQLite: a killed run loses only the calls under way.

One file belongs to one pull: it states the settings and the fingerprint of the index, and refuses
others. Each answer is committed at once, as JSON with a digest of itself and its key. API keys are
not stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from fusion_bench.connector import Hit
from fusion_bench.errors import DataError, ProviderError
from fusion_bench.util.files.databases import (
    digest_value,
    open_database,
    parse_digested,
    wrap_database_errors,
)

#: Raised when the layout or the meaning of a key changes.
VERSION: Final = 1
TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS pull (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""
#: Key of the row that says what was asked of whom.
IDENTITY: Final = "identity"


@dataclass(frozen=True)
class Answer:
    """One list of one query, as it was pulled.

    Attributes:
        hits: Best first.
        surplus: Hits beyond the depth, which are dropped.
        latency_ms: Of the call that succeeded.
        retries: Calls that failed before it.
    """

    hits: tuple[Hit, ...]
    surplus: int = 0
    latency_ms: float = 0.0
    retries: int = 0


class PullStore:
    """The answers of one pull.

    Args:
        path: Its file, created if missing; None = in memory.

    Raises:
        DataError: The file is no such store, or of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.where = str(path or "the answers in memory")
        with self._wrap_errors():
            self._db = open_database(path)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            tables = self._db.execute("SELECT name FROM sqlite_master").fetchall()
            if version not in {0, VERSION} or (version == 0 and tables):
                raise DataError(f"{self.where}: these are no answers of a pull: delete the file")
            self._db.executescript(TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _wrap_errors(self) -> AbstractContextManager[None]:
        return wrap_database_errors(self.where, "store of a pull")

    def read_identity(self) -> dict[str, Any] | None:
        """What was asked of whom, as :meth:`save_identity` got it; None = nothing yet."""
        row = self._read_row("pull", IDENTITY)
        return None if row is None else self._parse_value(IDENTITY, row)

    def save_identity(self, identity: Mapping[str, Any]) -> None:
        """Store what is asked of whom."""
        self._save_row("pull", IDENTITY, identity)

    def find_answers(self, keys: Sequence[str]) -> set[str]:
        """Those of the keys that have an answer."""
        statement = "SELECT key FROM answers WHERE key IN (SELECT value FROM json_each(?))"
        with self._wrap_errors():
            return {key for (key,) in self._db.execute(statement, (json.dumps([*keys]),))}

    def has_answers(self) -> bool:
        """Whether any answer is stored."""
        with self._wrap_errors():
            return self._db.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is not None

    def read_answer(self, key: str) -> Answer:
        """A stored answer.

        Raises:
            DataError: There is none, or it is not as it was written.
        """
        row = self._read_row("answers", key)
        if row is None:
            self._refuse_row(key)
        value = self._parse_value(key, row)
        try:
            hits = tuple(Hit(str(d), float(s), t) for d, s, t in value["hits"])
            return Answer(hits, value["surplus"], value["latency_ms"], value["retries"])
        except (KeyError, TypeError, ValueError, ProviderError):
            self._refuse_row(key)

    def save_answer(self, key: str, answer: Answer) -> None:
        """Store an answer."""
        hits = [[hit.document, hit.score, hit.text] for hit in answer.hits]
        facts = {
            "surplus": answer.surplus,
            "latency_ms": answer.latency_ms,
            "retries": answer.retries,
        }
        self._save_row("answers", key, {"hits": hits, **facts})

    def _read_row(self, table: str, key: str) -> object:
        statement = f"SELECT value FROM {table} WHERE key = ?"  # noqa: S608 - one of two names
        with self._wrap_errors():
            row = self._db.execute(statement, (key,)).fetchone()
        return None if row is None else row[0]

    def _save_row(self, table: str, key: str, value: Mapping[str, Any]) -> None:
        statement = f"INSERT OR REPLACE INTO {table} VALUES (?, ?)"  # noqa: S608 - one of two names
        with self._wrap_errors(), self._db:
            self._db.execute(statement, (key, digest_value(key, value)))

    def _parse_value(self, key: str, value: object) -> dict[str, Any]:
        """A stored value, once its digest is right."""
        record = parse_digested(key, value)
        if record is None:
            self._refuse_row(key)
        return record

    def _refuse_row(self, key: str) -> NoReturn:
        raise DataError(
            f"{self.where}: row {key!r} is not as it was written (its digest does not match): run "
            "the same command with --start-over"
        )

"""SQLite files that keep answers: each is committed at once, most with a digest."""

from __future__ import annotations

import json
import sqlite3
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn

from fusion_bench.errors import DataError
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from fusion_bench.util.files import check_regular, explain_error

#: Seconds that one process waits for another's write.
WRITE_TIMEOUT: Final = 30.0
#: A commit waits for the disk.
SYNCHRONOUS: Final = "FULL"


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
    database.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
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


class Store:
    """A file of answers.

    Args:
        path: Its file, created if missing; None = in memory.

    Attributes:
        kind: What it is, for messages.
        version: Raised when the layout or the meaning of a key changes.
        tables: The statements that make its tables.
        refusal: What is said of another file, or of one of another version.
        where: The file, for messages.

    Raises:
        DataError: The file is no such store, or of another version.
    """

    kind: ClassVar[str]
    version: ClassVar[int]
    tables: ClassVar[str]
    refusal: ClassVar[str]

    def __init__(self, path: Path | None = None) -> None:
        self.where = str(path or f"the {self.kind} in memory")
        with self._wrap_errors():
            self._db = open_database(path)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            self._prepare_tables(version)

    def _prepare_tables(self, version: int) -> None:
        """Create the tables where the version is 0."""
        known = self._db.execute("SELECT name FROM sqlite_master").fetchall()
        if version not in {0, self.version} or (version == 0 and known):
            raise DataError(f"{self.where}: {self.refusal}")
        if version == 0:
            self._create_tables()

    def _create_tables(self) -> None:
        self._db.executescript(f"{self.tables}PRAGMA user_version = {self.version};")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _wrap_errors(self) -> AbstractContextManager[None]:
        return wrap_database_errors(self.where, self.kind)


class DigestedStore(Store):
    """A store whose values are JSON, each with a digest of itself and its key."""

    def _save_row(self, statement: str, key: str, value: Mapping[str, Any]) -> None:
        with self._wrap_errors(), self._db:
            self._db.execute(statement, digested_row(key, value))

    def _parse_value(self, table: str, key: str, value: object) -> dict[str, Any]:
        """A stored value, once its digest is right."""
        text = strip_line_digest(value, key) if isinstance(value, str) else None
        try:
            record = None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            self._refuse_row(table, key)
        return record

    @abstractmethod
    def _refuse_row(self, table: str, key: str) -> NoReturn:
        """Refuse a row that is not as it was written.

        Raises:
            DataError: Always.
        """


def digested_row(key: str, value: Mapping[str, Any]) -> tuple[str, str]:
    """A key, and its value as JSON with a digest of both."""
    return key, add_line_digest(json.dumps(dict(value)), key)

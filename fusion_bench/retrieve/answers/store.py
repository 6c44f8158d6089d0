"""The answer store: vectors and passages that models gave, in SQLite.

The key of an answer is the SHA-256 of the text and of all else that it depends on: method, model,
endpoint, prompt. Neither texts nor API keys are stored, passages that a model wrote are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from fusion_bench.errors import DataError
from fusion_bench.util.files.databases import open_database, wrap_database_errors

#: Raised when the layout or the meaning of a key changes.
VERSION: Final = 1
TABLES: Final = f"""
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""


class AnswerStore:
    """An answer store.

    Args:
        path: Its file, created if missing; None = in memory.

    Attributes:
        where: The file, for messages.

    Raises:
        DataError: The file is no answer store, or of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.where = str(path or "the answer store in memory")
        with self._wrap_errors():
            self._db = open_database(path)
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            tables = self._db.execute("SELECT name FROM sqlite_master").fetchall()
            if version not in {0, VERSION} or (version == 0 and tables):
                raise DataError(
                    f"{self.where}: no answer store of version {VERSION}: name another file with "
                    "--store"
                )
            if version == 0:
                self._db.executescript(TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _wrap_errors(self) -> AbstractContextManager[None]:
        return wrap_database_errors(self.where, "answer store")

    def is_empty(self) -> bool:
        """Whether it holds no answer."""
        with self._wrap_errors():
            return self._db.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is None

    def read_answers(self, identity: str, texts: Sequence[str]) -> dict[str, bytes]:
        """The stored answers, by text."""
        keys = {_answer_key(identity, text): text for text in texts}
        statement = "SELECT key, value FROM answers WHERE key IN (SELECT value FROM json_each(?))"
        with self._wrap_errors():
            rows = self._db.execute(statement, (json.dumps([*keys]),)).fetchall()
        return {keys[key]: value for key, value in rows}

    def save_answers(self, identity: str, answers: Mapping[str, bytes]) -> None:
        """Store answers by text, all or none."""
        rows = [(_answer_key(identity, text), value) for text, value in answers.items()]
        with self._wrap_errors(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)


def _answer_key(identity: str, text: str) -> str:
    return hashlib.sha256(json.dumps([identity, text]).encode()).hexdigest()

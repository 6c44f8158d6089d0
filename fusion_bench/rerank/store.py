"""The score store: scores and events of runs, in SQLite.

The key of a score is the SHA-256 of all it depends on: provider, resolved model, endpoint, score
space, query, document text, truncation, prompt version. Values are JSON. Neither texts that were
sent nor API keys are stored. Each reply is committed at once, so a killed run loses only calls
under way.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from fusion_bench.errors import DataError
from fusion_bench.rerank.protocol import Identity

#: Raised when the layout or the meaning of a key changes.
VERSION = 1
TABLES = f"""
CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS models (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events
    (id INTEGER PRIMARY KEY, run TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_run ON events (run);
PRAGMA user_version = {VERSION};
"""
#: Stands for the document in the key of an answer about a query alone.
ANSWER = "\0answer"
#: Seconds that one process waits for another's write.
WRITE_TIMEOUT = 30.0


class ScoreStore:
    """A score store.

    Args:
        path: Its file, created if missing; None = in memory.

    Raises:
        DataError: The file is no score store, or of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._where = str(path or "the score store in memory")
        with self._wrap_errors():
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path or ":memory:", timeout=WRITE_TIMEOUT, isolation_level="IMMEDIATE"
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version not in {0, VERSION}:
                raise DataError(
                    f"{self._where}: score store of version {version}, supported is {VERSION}: "
                    "name another file with --store"
                )
            if version == 0:
                self._db.executescript(TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"{self._where}: not a usable score store: {error}") from None

    def read_scores(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> list[float | None]:
        """The score of each document text; None where none is stored."""
        keys = [_score_key(identity, query, document) for document in documents]
        statement = "SELECT key, value FROM scores WHERE key IN (SELECT value FROM json_each(?))"
        with self._wrap_errors():
            rows = self._db.execute(statement, (json.dumps(keys),)).fetchall()
        scores = {key: float(json.loads(value)["score"]) for key, value in rows}
        return [scores.get(key) for key in keys]

    def find_unread(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> tuple[int, ...]:
        """The 0-based positions of the documents whose stored score was filled in."""
        keys = [_score_key(identity, query, document) for document in documents]
        statement = (
            "SELECT key FROM scores WHERE key IN (SELECT value FROM json_each(?)) "
            "AND json_extract(value, '$.unread')"
        )
        with self._wrap_errors():
            rows = self._db.execute(statement, (json.dumps(keys),)).fetchall()
        unread = {key for (key,) in rows}
        return tuple(position for position, key in enumerate(keys) if key in unread)

    def save_scores(
        self,
        identity: Identity,
        query: str,
        scores: Mapping[str, float],
        event: tuple[str, Mapping[str, Any]] | None = None,
        *,
        unread: Collection[str] = (),
    ) -> None:
        """Store the scores of one call and its event, both or neither.

        Args:
            identity: The model that gave them, with its resolved name.
            query: The query.
            scores: Document text → score.
            event: Key of the run, and the event.
            unread: The documents whose score could not be read and was filled in.
        """
        source = {"provider": identity.provider, "model": identity.model}
        rows = []
        for document, score in scores.items():
            value = {"score": score, **source, **({"unread": True} if document in unread else {})}
            rows.append((_score_key(identity, query, document), json.dumps(value)))
        with self._wrap_errors(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
            if event is not None:
                self._insert_event(*event)

    def save_answer(self, identity: Identity, query: str, answer: str) -> None:
        """Store what a language model wrote about a query."""
        row = (_score_key(identity, query, ANSWER), json.dumps({"answer": answer}))
        with self._wrap_errors(), self._db:
            self._db.execute("INSERT OR REPLACE INTO scores VALUES (?, ?)", row)

    def read_answer(self, identity: Identity, query: str) -> str | None:
        """What a language model wrote about a query; None = nothing is stored."""
        key = _score_key(identity, query, ANSWER)
        with self._wrap_errors():
            row = self._db.execute("SELECT value FROM scores WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(json.loads(row[0])["answer"])

    def resolved_model(self, identity: Identity) -> str:
        """The model that the provider last resolved the name to; the name itself if unknown."""
        with self._wrap_errors():
            row = self._db.execute(
                "SELECT value FROM models WHERE key = ?", (_score_key(identity, "", ""),)
            ).fetchone()
        return identity.model if row is None else str(json.loads(row[0])["model"])

    def save_model(self, identity: Identity, model: str) -> None:
        """Store the model that a provider resolved the name to."""
        row = (_score_key(identity, "", ""), json.dumps({"model": model}))
        with self._wrap_errors(), self._db:
            self._db.execute("INSERT OR REPLACE INTO models VALUES (?, ?)", row)

    def record_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Store an event of a run."""
        with self._wrap_errors(), self._db:
            self._insert_event(run, event)

    def _insert_event(self, run: str, event: Mapping[str, Any]) -> None:
        self._db.execute(
            "INSERT INTO events (run, value) VALUES (?, ?)", (run, json.dumps(dict(event)))
        )

    def read_events(self, run: str) -> list[dict[str, Any]]:
        """All events of a run, interrupted ones included, in order."""
        with self._wrap_errors():
            rows = self._db.execute("SELECT value FROM events WHERE run = ? ORDER BY id", (run,))
            return [json.loads(value) for (value,) in rows]


def _score_key(identity: Identity, query: str, document: str) -> str:
    text = hashlib.sha256(document.encode()).hexdigest()
    return hashlib.sha256(json.dumps([*astuple(identity), query, text]).encode()).hexdigest()

"""Stores of what was paid for: scores with the events of their runs, answers; in SQLite or memory.

The key of a score is the SHA-256 of all it depends on: provider, resolved model, endpoint, score
space, query, document text, truncation, prompt version. Values are JSON, each with a digest of
itself and its key. Neither texts that were sent nor API keys are stored, passages that a model
wrote are. Each reply is committed at once, so a killed run loses only calls under way.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, NoReturn

from fusion_bench.errors import DataError
from fusion_bench.models.reranker_protocol import Identity
from fusion_bench.util.databases import DigestedStore, Store, digested_row
from fusion_bench.util.digests import add_line_digest
from fusion_bench.util.files import take_lock

SCORE_TABLES = """
CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS models (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events
    (id INTEGER PRIMARY KEY, run TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_run ON events (run);
"""
ANSWER_TABLES = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
#: What reads the rows of version 1 (key, what the digest covers besides, value), and replaces one.
TAKE_OVER = (
    ("SELECT key, key, value FROM scores", "UPDATE scores SET value = ? WHERE key = ?"),
    ("SELECT key, key, value FROM models", "UPDATE models SET value = ? WHERE key = ?"),
    ("SELECT id, run, value FROM events", "UPDATE events SET value = ? WHERE id = ?"),
)
#: What stores a row: its key, or an event's run, and its value.
SAVE_SCORE = "INSERT OR REPLACE INTO scores VALUES (?, ?)"
SAVE_EVENT = "INSERT INTO events (run, value) VALUES (?, ?)"
SAVE_MODEL = "INSERT OR REPLACE INTO models VALUES (?, ?)"
#: Stands for the document in the key of an answer about a query alone.
ANSWER = "\0answer"


class AnswerStore(Store):
    """An answer store: the answers of models to single texts, of engines to queries."""

    kind = "answer store"
    version = 1
    tables = ANSWER_TABLES
    refusal = "no answer store of version 1: name another file with --store"

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


class ScoreStore(DigestedStore):
    """A score store: scores, resolved models, events of runs.

    Format history: 1 is the first version, taken over when it is opened; in 2 each value has a
    digest.
    """

    kind = "score store"
    version = 2
    tables = SCORE_TABLES

    def _prepare_tables(self, version: int) -> None:
        if version not in {0, 1, self.version}:
            raise DataError(
                f"{self.where}: score store of version {version}, supported is {self.version}: "
                "name another file with --store"
            )
        if version == 0:
            self._create_tables()
        elif version == 1:  # its store is taken over, all of it or nothing
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if self._db.execute("PRAGMA user_version").fetchone() != (1,):
                    return  # another process was faster
                for read, replace in TAKE_OVER:
                    rows = self._db.execute(read).fetchall()
                    changed = [(add_line_digest(str(v), about), key) for key, about, v in rows]
                    self._db.executemany(replace, changed)
                self._db.execute(f"PRAGMA user_version = {self.version}")

    def read_scores(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> list[float | None]:
        """The score of each document text; None where none is stored."""
        keys = [_score_key(identity, query, document) for document in documents]
        scores: dict[str, float] = {}
        for key, value in self._read_values(keys):
            score: Any = value.get("score")
            is_number = isinstance(score, int | float) and not isinstance(score, bool)
            if not is_number or not abs(score) <= sys.float_info.max:
                self._refuse_row("scores", key)
            scores[key] = float(score)
        return [scores.get(key) for key in keys]

    def _read_values(self, keys: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """The stored values of these keys."""
        statement = "SELECT key, value FROM scores WHERE key IN (SELECT value FROM json_each(?))"
        with self._wrap_errors():
            rows = self._db.execute(statement, (json.dumps(keys),)).fetchall()
        return [(key, self._parse_value("scores", key, value)) for key, value in rows]

    def _refuse_row(self, table: str, key: str) -> NoReturn:
        column = "run" if table == "events" else "key"
        raise DataError(
            f"{self.where}: a row of {table} is not as it was written (its digest does not "
            f"match): restore the file, or delete the row where {column} is {key!r}: what it held "
            "is then asked for, and paid, again"
        )

    def find_unread(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> tuple[int, ...]:
        """The 0-based positions of the documents whose stored score was filled in."""
        keys = [_score_key(identity, query, document) for document in documents]
        unread = {key for key, value in self._read_values(keys) if value.get("unread")}
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
            rows.append(digested_row(_score_key(identity, query, document), value))
        with self._wrap_errors(), self._db:
            self._db.executemany(SAVE_SCORE, rows)
            if event is not None:
                self._db.execute(SAVE_EVENT, digested_row(*event))

    def save_answer(self, identity: Identity, query: str, answer: str) -> None:
        """Store what a language model wrote about a query."""
        self._save_row(SAVE_SCORE, _score_key(identity, query, ANSWER), {"answer": answer})

    def read_answer(self, identity: Identity, query: str) -> str | None:
        """What a language model wrote about a query; None = nothing is stored."""
        key = _score_key(identity, query, ANSWER)
        return next((str(value.get("answer")) for _, value in self._read_values([key])), None)

    def resolved_model(self, identity: Identity) -> str:
        """The model that the provider last resolved the name to; the name itself if unknown."""
        key = _score_key(identity, "", "")
        with self._wrap_errors():
            row = self._db.execute("SELECT value FROM models WHERE key = ?", (key,)).fetchone()
        if row is None:
            return identity.model
        return str(self._parse_value("models", key, row[0]).get("model", identity.model))

    def save_model(self, identity: Identity, model: str) -> None:
        """Store the model that a provider resolved the name to."""
        self._save_row(SAVE_MODEL, _score_key(identity, "", ""), {"model": model})

    def record_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Store an event of a run."""
        self._save_row(SAVE_EVENT, run, event)

    def read_events(self, run: str) -> list[dict[str, Any]]:
        """All events of a run, interrupted ones included, in order."""
        with self._wrap_errors():
            rows = self._db.execute("SELECT value FROM events WHERE run = ? ORDER BY id", (run,))
            values = rows.fetchall()
        return [self._parse_value("events", run, value) for (value,) in values]


def _score_key(identity: Identity, query: str, document: str) -> str:
    text = hashlib.sha256(document.encode()).hexdigest()
    return hashlib.sha256(json.dumps([*astuple(identity), query, text]).encode()).hexdigest()


log = logging.getLogger("fusion_bench.rerank")

#: A lock that has vanished so often while it was opened is in a folder that takes no files.
MOST_VANISHED = 1000


@contextmanager
def lock_models(store: Path, identities: Iterable[Identity]) -> Iterator[None]:
    """Hold a store's lock for each model; wait for a run that holds one of them.

    A lock is a file beside the store, removed in the end. The system releases the lock of a killed
    run. Runs that ask other models do not wait. Without locks of files nobody waits.

    Args:
        store: The file of the score store.
        identities: The models as configured.
    """
    labels: dict[Path, str] = {}
    for identity in identities:
        digest = hashlib.sha256(json.dumps(astuple(identity)).encode()).hexdigest()[:16]
        # Stores of two names that lead to one file have one lock.
        labels[Path(f"{os.path.realpath(store)}.{digest}.lock")] = identity.label
    with ExitStack() as stack:
        for path in sorted(labels):  # in one order, or two runs would wait for each other
            lock = _wait_for_lock(path, f"{store}: another run asks {labels[path]}")
            if lock is not None:  # the file goes before its descriptor
                stack.callback(os.close, lock)
                stack.callback(path.unlink, missing_ok=True)
        yield


def _wait_for_lock(path: Path, conflict: str) -> int | None:
    """The descriptor that holds a lock; None where there are no locks."""
    has_waited = False
    vanished = 0
    while vanished < MOST_VANISHED:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            lock = take_lock(path, wait=has_waited)
        except FileNotFoundError:
            vanished += 1  # the run that held it has just removed it, or the folder takes no file
            continue
        except OSError:
            return None
        if lock is not None:
            return lock
        if not has_waited:
            log.warning("%s and keeps its scores there: waiting for its end", conflict)
        has_waited = True
    return None


class RecentScores:
    """What :class:`ScoreStore` keeps, up to a limit.

    Args:
        pairs: Most pairs of query and document whose score is kept; more than the queries that
            are under way at once need.
        events: Most events that are kept.
    """

    def __init__(self, pairs: int = 100_000, events: int = 10_000) -> None:
        self._limit = pairs
        # Score, and whether it could not be read and was filled in.
        self._scores: OrderedDict[tuple[Identity, str, str], tuple[float, bool]] = OrderedDict()
        self._models: dict[Identity, str] = {}
        self._events: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=events)

    def read_scores(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> list[float | None]:
        """The score of each document text; None where none is kept."""
        known = (self._scores.get((identity, query, document)) for document in documents)
        return [None if kept is None else kept[0] for kept in known]

    def find_unread(
        self, identity: Identity, query: str, documents: Sequence[str]
    ) -> tuple[int, ...]:
        """The 0-based positions of the documents whose kept score was filled in."""
        known = (self._scores.get((identity, query, document)) for document in documents)
        return tuple(i for i, kept in enumerate(known) if kept is not None and kept[1])

    def save_scores(
        self,
        identity: Identity,
        query: str,
        scores: Mapping[str, float],
        event: tuple[str, Mapping[str, Any]] | None = None,
        *,
        unread: Collection[str] = (),
    ) -> None:
        """Keep the scores of one call and its event; arguments as of the store."""
        for document, score in scores.items():
            self._scores[identity, query, document] = score, document in unread
        while len(self._scores) > self._limit:
            self._scores.popitem(last=False)
        if event is not None:
            self.record_event(*event)

    def resolved_model(self, identity: Identity) -> str:
        """The model that the provider last resolved the name to; the name itself if unknown."""
        return self._models.get(identity, identity.model)

    def save_model(self, identity: Identity, model: str) -> None:
        """Keep the model that a provider resolved the name to."""
        self._models[identity] = model

    def record_event(self, run: str, event: Mapping[str, Any]) -> None:
        """Keep an event of a run."""
        self._events.append((run, dict(event)))

    def read_events(self, run: str) -> list[Mapping[str, Any]]:
        """The kept events of a run, in order."""
        return [event for name, event in self._events if name == run]

"""Every list that is not stored yet is asked of an engine; each answer is stored at once.

One file belongs to one pull: it states the settings and the fingerprint of the index, and refuses
others. Each answer is committed at once, as JSON with a digest of itself and its key. API keys are
not stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from fusion_bench.engines.connectors import Connector, EngineSession, Hit, check_hits
from fusion_bench.engines.pull_questions import Question, describe_identity
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, ProviderError
from fusion_bench.models.endpoints import REPEATED, RetryRules, call_with_retries
from fusion_bench.util.calls import RateLimiter
from fusion_bench.util.databases import (
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

    Attributes:
        where: The file, for messages.
        is_done: Whether nothing is left to ask: no later pull needs the answers.

    Raises:
        DataError: The file is no such store, or of another version.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.where, self.is_done = str(path or "the answers in memory"), False
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
        self._save_row("answers", key, {**vars(answer), "hits": hits})

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


#: Failures in a row after which no further query is skipped.
MOST_FAILURES: Final = 5
#: Least seconds for connecting: a library may have to open an index.
CONNECTING_SECONDS: Final = 300.0
#: What resumes a pull that failed; where it began by ``--start-over``.
RESUME: Final = "run the same command again to resume"
RESUME_ANEW: Final = "run the same command without --start-over to resume"
#: Characters of the fingerprint of an index.
LONGEST_FINGERPRINT: Final = 100_000


@dataclass
class PullWork:
    """One pull under way.

    Attributes:
        connector: The engine.
        questions: Everything that is to be known.
        store: The answers.
        texts: Whether the texts of documents are asked for.
        skip_failed: Whether a query of which a list fails for good is left out.
        is_of_dataset: Whether the answers in the store are to complete or replace a dataset that is
            there, so that they must be of the same queries and depths.
        resume: What resumes it after a failure, for messages.
        on_progress: Called with the number of answers that are known, and of all.
        asked: Questions that were asked now and answered.
        failed: Query id → why a list of it failed for good.
        fingerprint: Of the index before the first question.
        is_changed: Whether it was another after the last one.
    """

    connector: Connector
    questions: Sequence[Question]
    store: PullStore
    texts: bool = False
    skip_failed: bool = False
    is_of_dataset: bool = False
    resume: str = RESUME
    on_progress: Callable[[int, int], None] = lambda *_: None
    asked: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    is_changed: bool = False


async def ask_questions(work: PullWork) -> None:
    """Ask every question whose answer is not stored.

    Raises:
        ConfigError: The answers in the store are of other settings, or of another index.
        ProviderError: A question failed for good; answers that came before are stored.
    """
    async with AsyncExitStack() as stack:
        connection = stack.enter_async_context(work.connector.connect())
        session = await limit_call(connection, max(work.connector.timeout, CONNECTING_SECONDS))
        work.fingerprint = await _read_fingerprint(session, work)
        _check_identity(work)
        known = work.store.find_answers([question.key for question in work.questions])
        missing = [question for question in work.questions if question.key not in known]
        await _Workers(work, session, missing).run()
        if missing:
            work.is_changed = await _read_fingerprint(session, work) != work.fingerprint


def _check_identity(work: PullWork) -> None:
    """Refuse to mix answers of two settings or two states of the index.

    Before the first answer there is nothing to mix: a wrong setting is corrected, no more.
    """
    identity = describe_identity(work.connector, work.fingerprint, work.questions)
    known = work.store.read_identity()
    if known is not None and (work.is_of_dataset or work.store.has_answers()):
        for part, what in (("settings", "settings"), ("fingerprint", "index")):
            before, now = known.get(part) or {}, identity[part]
            if before != now:
                keys = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
                raise ConfigError(
                    f"{work.store.where}: the {what} changed since the pull began "
                    f"({', '.join(keys)}), and lists of both cannot be mixed: undo the change, or "
                    "run the same command with --start-over"
                )
    if work.is_of_dataset and (known or {}).get("questions") != identity["questions"]:
        raise ConfigError(
            f"{work.store.where}: the unfinished pull asks for other queries, vectors, depths or "
            "texts, and a dataset is there already: repeat its command, or add --start-over"
        )
    if known != identity:
        work.store.save_identity(identity)


class _Workers:
    """Workers that take one question after the other until one fails for good.

    Args:
        work: The pull.
        session: The engine.
        missing: What is asked.
    """

    def __init__(self, work: PullWork, session: EngineSession, missing: Sequence[Question]) -> None:
        self._work, self._session = work, session
        self._questions = iter(missing)
        self._known = len(work.questions) - len(missing)
        connector = work.connector
        self._limiter = RateLimiter(connector.concurrency, connector.requests_per_minute)
        self._errors: list[FusionBenchError] = []
        self._failures_in_row = 0

    async def run(self) -> None:
        """Ask everything.

        Raises:
            FusionBenchError: The first failure that stopped the workers.
        """
        work = self._work
        work.on_progress(self._known, len(work.questions))
        await asyncio.gather(*(self._take_questions() for _ in range(work.connector.concurrency)))
        if self._errors:
            raise self._with_remedy(self._errors[0])

    async def _take_questions(self) -> None:
        while not self._errors and (question := next(self._questions, None)) is not None:
            if question.query.id in self._work.failed:
                continue
            try:
                answer = await self._ask(question)
                self._work.store.save_answer(question.key, answer)
            except FusionBenchError as error:
                self._record_failure(question, error)
                continue
            self._failures_in_row = 0
            self._known += 1
            self._work.asked += 1
            self._work.on_progress(self._known, len(self._work.questions))

    def _record_failure(self, question: Question, error: FusionBenchError) -> None:
        self._failures_in_row += 1
        is_passing = isinstance(error, ProviderError) and self._failures_in_row < MOST_FAILURES
        if self._work.skip_failed and is_passing:
            self._work.failed.setdefault(question.query.id, f"{question.plan.name}: {error}")
        else:
            self._errors.append(_name_question(question, error))

    async def _ask(self, question: Question) -> Answer:
        """The answer to one question, after retries."""
        connector, calls, started = self._work.connector, 0, 0.0

        async def ask_once() -> Sequence[Hit]:
            nonlocal calls, started
            calls += 1
            async with self._limiter.acquire_slot():
                started = time.monotonic()
                hits = await limit_call(self._read_list(question), connector.timeout)
                seconds.append(time.monotonic() - started)
            checked = check_hits(hits, question.plan.depth)
            surplus.append(len(hits) - len(checked))
            return checked

        seconds: list[float] = []
        surplus: list[int] = []
        rules = RetryRules(
            attempts=connector.attempts,
            wait_initial=connector.wait,
            wait_jitter=min(1.0, connector.wait),
            failure_kinds=(*REPEATED, "timeout"),
        )
        hits = await call_with_retries(ask_once, rules.choose_wait)
        return Answer(tuple(hits), surplus[-1], round(1e3 * seconds[-1], 3), calls - 1)

    def _read_list(self, question: Question) -> Awaitable[Sequence[Hit]]:
        plan, query, texts = question.plan, question.query, self._work.texts
        if plan.is_fused:
            return self._session.read_fused(query, depth=plan.depth, texts=texts)
        return self._session.read_leg(plan.name, query, depth=plan.depth, texts=texts)

    def _with_remedy(self, error: FusionBenchError) -> FusionBenchError:
        if not isinstance(error, ProviderError):
            return error
        work = self._work
        return ProviderError(
            f"{error} ({self._known} of {len(work.questions)} answers are stored in "
            f"{work.store.where}: {work.resume})",
            kind=error.kind,
        )


def _name_question(question: Question, error: FusionBenchError) -> FusionBenchError:
    """The error with the list and the query that it belongs to."""
    if not isinstance(error, ProviderError):
        return error
    return ProviderError(
        f"{question.plan.name}, query {question.query.id!r}: {error}", kind=error.kind
    )


async def limit_call(call: Awaitable[Any], seconds: float) -> Any:  # noqa: ANN401 - of the call
    """What a call of a session returns within a time; whatever it raises becomes our error.

    Raises:
        ProviderError: It took too long (kind ``timeout``), or raised (kind ``refused``).
    """
    try:
        async with asyncio.timeout(seconds):
            return await call
    except FusionBenchError:
        raise
    except TimeoutError:
        raise ProviderError(f"no answer within {seconds:g} s", kind="timeout") from None
    except Exception as error:  # noqa: BLE001 - a library or the user's code may raise anything
        text = " ".join(str(error).split())[:300]
        raise ProviderError(f"{type(error).__name__}: {text}", kind="refused") from None


async def _read_fingerprint(session: EngineSession, work: PullWork) -> dict[str, Any]:
    """What the lists depend on, as JSON.

    Raises:
        ProviderError: The engine failed, or the answer is no JSON object of a sane size.
    """
    rules = RetryRules(
        attempts=work.connector.attempts,
        wait_initial=work.connector.wait,
        failure_kinds=REPEATED,
    )

    async def read_once() -> Mapping[str, Any]:
        given: Mapping[str, Any] = await limit_call(
            session.read_fingerprint(), work.connector.timeout
        )
        return given

    given = await call_with_retries(read_once, rules.choose_wait)
    try:
        text = json.dumps(dict(given), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError):
        raise ProviderError("the fingerprint is no JSON object", kind="malformed") from None
    if len(text) > LONGEST_FINGERPRINT:
        raise ProviderError("the fingerprint is too long", kind="malformed")
    data: dict[str, Any] = json.loads(text)
    return data

"""Ask an engine for the lists that are not stored yet, and store each answer at once.

One file belongs to one pull: it states the settings and the fingerprint of the index, and refuses
others. Each answer is committed at once, as JSON with a digest of itself and its key. API keys are
not stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

from pydantic import JsonValue

from fusion_bench.engines.connectors import Connector, EngineSession, Hit, check_hits
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull_questions import Question, describe_settings
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, ProviderError
from fusion_bench.models.endpoints import REPEATED, RetryRules, call_with_retries
from fusion_bench.util.calls import RateLimiter, await_contained
from fusion_bench.util.databases import DigestedStore
from fusion_bench.util.digests import hash_values

TABLES: Final = """
CREATE TABLE IF NOT EXISTS pull (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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


class PullStore(DigestedStore):
    """The answers of one pull.

    Attributes:
        is_done: Whether nothing is left to ask: no later pull needs the answers.
    """

    kind = "store of a pull"
    version = 1
    tables = TABLES
    refusal = "these are no answers of a pull: delete the file"
    is_done = False

    def read_identity(self) -> dict[str, Any] | None:
        """Read the identity that :meth:`save_identity` stored; None = none yet."""
        return self._read_row("pull", IDENTITY)

    def save_identity(self, identity: Mapping[str, Any]) -> None:
        """Store what is asked of whom."""
        self._save_row("INSERT OR REPLACE INTO pull VALUES (?, ?)", IDENTITY, identity)

    def find_answers(self, keys: Sequence[str]) -> set[str]:
        """Find the keys that have an answer."""
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
        value = self._read_row("answers", key) or {}
        try:
            hits = tuple(Hit(str(d), float(s), t) for d, s, t in value["hits"])
            return Answer(hits, value["surplus"], value["latency_ms"], value["retries"])
        except (KeyError, TypeError, ValueError):
            self._refuse_row("answers", key)

    def save_answer(self, key: str, answer: Answer) -> None:
        """Store an answer."""
        hits = [[hit.document, hit.score, hit.text] for hit in answer.hits]
        value = {**vars(answer), "hits": hits}
        self._save_row("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, value)

    def _read_row(self, table: str, key: str) -> dict[str, Any] | None:
        statement = f"SELECT value FROM {table} WHERE key = ?"  # noqa: S608 - one of two names
        with self._wrap_errors():
            row = self._db.execute(statement, (key,)).fetchone()
        return None if row is None else self._parse_value(table, key, row[0])

    def _refuse_row(self, table: str, key: str) -> NoReturn:  # noqa: ARG002 - keys differ by table
        raise DataError(
            f"{self.where}: row {key!r} is not as it was written (its digest does not match): run "
            "the same command with --replace"
        )


#: Failures in a row after which no further query is skipped.
MOST_FAILURES: Final = 5
#: Least seconds for connecting: a library may have to open an index.
CONNECTING_SECONDS: Final = 300.0
#: What resumes a pull that failed; where it began by ``--replace``.
RESUME: Final = "run the same command again to resume"
RESUME_ANEW: Final = "run the same command without --replace to resume"
#: Characters of the fingerprint of an index.
LONGEST_FINGERPRINT: Final = 100_000


@dataclass
class PullWork:
    """One pull under way: workers take one question after the other until one fails for good.

    Attributes:
        connector: The engine.
        options: What is pulled of it.
        questions: Everything that is to be known.
        store: The answers.
        is_of_dataset: Whether the answers in the store are to complete or replace a dataset that is
            there, so that they must be of the same queries and depths.
        on_progress: Called with the number of answers that are known, and of all.
        asked: Questions that were asked now and answered.
        failed: Query id → why a list of it failed for good.
        fingerprint: Of the index before the first question.
        is_changed: Whether it was another after the last one.
        documents: Id → text of every document of the index, where all texts are pulled.
    """

    connector: Connector
    options: PullOptions
    questions: Sequence[Question]
    store: PullStore
    is_of_dataset: bool = False
    on_progress: Callable[[int, int], None] = lambda *_: None
    asked: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    fingerprint: dict[str, Any] = field(default_factory=dict)
    is_changed: bool = False
    documents: dict[str, str | None] = field(default_factory=dict)
    _known: int = field(default=0, init=False)
    _errors: list[FusionBenchError] = field(default_factory=list, init=False)
    _failures_in_row: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        rate = self.connector.requests_per_minute
        self._limiter = RateLimiter(self.connector.concurrency, rate)

    async def ask_questions(self) -> None:
        """Ask every question whose answer is not stored.

        Raises:
            ConfigError: The answers in the store are of other settings, or of another index.
            ProviderError: A question failed for good; answers that came before are stored.
        """
        async with AsyncExitStack() as stack:
            connection = stack.enter_async_context(self.connector.connect())
            session = await _limit_call(connection, max(self.connector.timeout, CONNECTING_SECONDS))
            self.fingerprint = await _read_fingerprint(session, self.connector)
            self._check_identity()
            known = self.store.find_answers([question.key for question in self.questions])
            missing = [question for question in self.questions if question.key not in known]
            self._known = len(self.questions) - len(missing)
            self.on_progress(self._known, len(self.questions))
            left = iter(missing)
            workers = range(self.connector.concurrency)
            await asyncio.gather(*(self._take_questions(session, left) for _ in workers))
            if self._errors:
                error = self._errors[0]
                if isinstance(error, ProviderError):
                    resume = RESUME_ANEW if self.options.start_over else RESUME
                    error = ProviderError(
                        f"{error} ({self._known} of {len(self.questions)} answers are stored in "
                        f"{self.store.where}: {resume})",
                        kind=error.kind,
                    )
                raise error
            if self.options.all_texts:
                listing: Any = session  # a ListingSession
                place: JsonValue = None
                while True:  # page by page
                    call = partial(listing.read_documents, place)
                    page, place = await _call_patiently(call, self.connector)
                    self.documents |= {hit.document: hit.text for hit in page}
                    if place is None or not page:
                        break
            if missing:
                fingerprint = await _read_fingerprint(session, self.connector)
                self.is_changed = fingerprint != self.fingerprint

    def _check_identity(self) -> None:
        """Refuse to mix answers of two settings or two states of the index.

        Before the first answer there is nothing to mix: a wrong setting is corrected, no more.
        """
        store = self.store
        facts = {
            "settings": describe_settings(self.connector),
            "fingerprint": dict(self.fingerprint),
            "questions": hash_values(sorted(question.key for question in self.questions)),
        }
        identity: dict[str, Any] = json.loads(json.dumps(facts))
        known = store.read_identity()
        if known is not None and (self.is_of_dataset or store.has_answers()):
            for part, what in (("settings", "settings"), ("fingerprint", "index")):
                before, now = known.get(part) or {}, identity[part]
                if before != now:
                    keys = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
                    raise ConfigError(
                        f"{store.where}: the {what} changed since the pull began "
                        f"({', '.join(keys)}), and lists of both cannot be mixed: undo the change, "
                        "or run the same command with --replace"
                    )
        if self.is_of_dataset and (known or {}).get("questions") != identity["questions"]:
            raise ConfigError(
                f"{store.where}: the unfinished pull asks for other queries, vectors, depths or "
                "texts, and a dataset is there already: repeat its command, or add --replace"
            )
        if known != identity:
            store.save_identity(identity)

    async def _take_questions(self, session: EngineSession, left: Iterator[Question]) -> None:
        while not self._errors and (question := next(left, None)) is not None:
            if question.query.id in self.failed:
                continue
            try:
                answer = await self._ask(session, question)
                self.store.save_answer(question.key, answer)
            except FusionBenchError as error:
                self._failures_in_row += 1
                is_passing = (
                    isinstance(error, ProviderError) and self._failures_in_row < MOST_FAILURES
                )
                if self.options.skip_failed and is_passing:
                    self.failed.setdefault(question.query.id, f"{question.plan.name}: {error}")
                elif isinstance(error, ProviderError):
                    where = f"{question.plan.name}, query {question.query.id!r}"
                    self._errors.append(ProviderError(f"{where}: {error}", kind=error.kind))
                else:
                    self._errors.append(error)
                continue
            self._failures_in_row = 0
            self._known += 1
            self.asked += 1
            self.on_progress(self._known, len(self.questions))

    async def _ask(self, session: EngineSession, question: Question) -> Answer:
        """The answer to one question, after retries."""
        plan, query, texts = question.plan, question.query, self.options.texts
        connector, calls, started = self.connector, 0, 0.0

        async def ask_once() -> Sequence[Hit]:
            nonlocal calls, started
            calls += 1
            async with self._limiter.acquire_slot():
                answer = (
                    session.read_fused(query, depth=plan.depth, texts=texts)
                    if plan.is_fused
                    else session.read_source(plan.name, query, depth=plan.depth, texts=texts)
                )
                started = time.monotonic()
                hits = await _limit_call(answer, connector.timeout)
                seconds.append(time.monotonic() - started)
            checked = check_hits(hits, plan.depth)
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


async def _limit_call(call: Awaitable[Any], seconds: float) -> Any:  # noqa: ANN401 - of the call
    """Await a call of a session for a limited time; turn its exceptions into ours.

    Raises:
        ProviderError: It took too long (kind ``timeout``), or raised (kind ``refused``).
    """
    try:
        async with asyncio.timeout(seconds):
            return await await_contained(call)
    except FusionBenchError:
        raise
    except TimeoutError:
        raise ProviderError(f"no answer within {seconds:g} s", kind="timeout") from None
    except Exception as error:  # noqa: BLE001 - a library or the user's code may raise anything
        text = " ".join(str(error).split())[:300]
        raise ProviderError(f"{type(error).__name__}: {text}", kind="refused") from None


async def _call_patiently(call: Callable[[], Awaitable[Any]], connector: Connector) -> Any:  # noqa: ANN401 - of the call
    """Await a call of a session; repeat it if the engine is busy or down."""
    rules = RetryRules(
        attempts=connector.attempts, wait_initial=connector.wait, failure_kinds=REPEATED
    )
    return await call_with_retries(
        lambda: _limit_call(call(), connector.timeout), rules.choose_wait
    )


async def _read_fingerprint(session: EngineSession, connector: Connector) -> dict[str, Any]:
    """Read the fingerprint of the index as JSON.

    Raises:
        ProviderError: The engine failed, or the answer is no JSON object of a sane size.
    """
    given: Mapping[str, Any] = await _call_patiently(session.read_fingerprint, connector)
    try:
        text = json.dumps(dict(given), allow_nan=False, sort_keys=True)
    except (TypeError, ValueError):
        raise ProviderError("the fingerprint is no JSON object", kind="malformed") from None
    if len(text) > LONGEST_FINGERPRINT:
        raise ProviderError("the fingerprint is too long", kind="malformed")
    data: dict[str, Any] = json.loads(text)
    return data

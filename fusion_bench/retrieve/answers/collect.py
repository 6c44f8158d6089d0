"""Ask a model for whatever is not stored yet; each reply is stored at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.util.calls.retries import RetryRules, call_with_retries


@dataclass(frozen=True)
class Reply:
    """Reply to one call.

    Attributes:
        values: One per text, in their order.
        tokens: Tokens that it bills; 0 = it does not say, or nothing is billed.
    """

    values: tuple[bytes, ...]
    tokens: int = 0


class Model(Protocol):
    """Answers texts.

    Attributes:
        identity: All that an answer depends on besides the text.
        batch: Most texts per call.
        concurrency: Most concurrent calls.
        retries: When a call is repeated.
    """

    identity: str
    batch: int
    concurrency: int
    retries: RetryRules

    async def answer(self, texts: Sequence[str]) -> Reply:
        """One value per text.

        Raises:
            ProviderError: The call failed; the kind decides what happens next.
        """
        ...


@dataclass(frozen=True)
class Usage:
    """What was asked for, and what was known.

    Attributes:
        stored: Texts whose answer was in the store.
        asked: Texts that were asked for.
        calls: Calls that were answered.
        tokens: Tokens that these calls bill.
    """

    stored: int = 0
    asked: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.stored + other.stored,
            self.asked + other.asked,
            self.calls + other.calls,
            self.tokens + other.tokens,
        )


@dataclass
class _Work:
    """One collection under way."""

    model: Model
    store: AnswerStore
    on_progress: Callable[[int, int], None]
    total: int
    answers: dict[str, bytes]
    usage: Usage
    errors: list[FusionBenchError] = field(default_factory=list)


async def collect_answers(
    model: Model,
    texts: Sequence[str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[list[bytes], Usage]:
    """The answer to each text, from the store or from the model.

    Args:
        model: Who is asked.
        texts: What is asked; one that stands twice is asked once.
        store: Keeps the answers.
        on_progress: Called with the number of answers known, and of all.

    Raises:
        ProviderError: A call failed for good; answers that came before are stored.
    """
    distinct = list(dict.fromkeys(texts))
    known = store.read_answers(model.identity, distinct)
    # Texts of about equal length share a batch, which local models answer faster.
    missing = sorted((text for text in distinct if text not in known), key=len)
    usage = Usage(stored=len(known), asked=len(missing))
    work = _Work(model, store, on_progress, len(distinct), known, usage)
    if missing:
        batches = iter([missing[i : i + model.batch] for i in range(0, len(missing), model.batch)])
        on_progress(len(known), len(distinct))

        async def take_batches() -> None:
            while not work.errors and (batch := next(batches, None)) is not None:
                try:
                    await _ask(work, batch)
                except FusionBenchError as error:
                    work.errors.append(error)

        await asyncio.gather(*(take_batches() for _ in range(model.concurrency)))
    if work.errors:
        raise _with_remedy(work)
    return [work.answers[text] for text in texts], work.usage


def _with_remedy(work: _Work) -> FusionBenchError:
    error, done = work.errors[0], len(work.answers)
    if not isinstance(error, ProviderError):
        return error
    return ProviderError(
        f"{error} ({done} of {work.total} answers are stored in {work.store.where}: run the same "
        "command again to resume)",
        kind=error.kind,
    )


async def _ask(work: _Work, batch: Sequence[str]) -> None:
    """Ask for one batch; what is refused as too large is split into halves."""
    try:
        reply = await call_with_retries(lambda: work.model.answer(batch), work.model.retries)
    except ProviderError as error:
        if error.kind != "too_large" or len(batch) == 1:
            raise
        half = (len(batch) + 1) // 2
        await _ask(work, batch[:half])
        await _ask(work, batch[half:])
        return
    answers = dict(zip(batch, reply.values, strict=True))
    work.store.save_answers(work.model.identity, answers)
    work.answers |= answers
    work.usage = replace(
        work.usage, calls=work.usage.calls + 1, tokens=work.usage.tokens + reply.tokens
    )
    work.on_progress(len(work.answers), work.total)

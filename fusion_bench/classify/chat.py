"""A classifier that asks a language model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fusion_bench.classify.chat_client import TYPES, ChatClassifierClient, ModelAnswer
from fusion_bench.classify.protocol import ClassifiedQuery, make_classification, make_failure
from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, CostLimitError, FusionBenchError, ProviderError
from fusion_bench.experiment.method_options import set_options
from fusion_bench.rerank.calls.limits import Budget
from fusion_bench.rerank.calls.session import ProviderSession
from fusion_bench.rerank.ledger import sum_booked_costs, summarize_events
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.store import ScoreStore


def ignore_progress(done: int, total: int, spent: float) -> None:
    """Report no progress."""


@dataclass
class ChatClassifier:
    """Asks a language model for the type of each query; an answer that is stored is not paid again.

    Attributes:
        client: The endpoint and the model.
        store: Answers and the ledger; in memory by default.
        settings: Timeouts, retries, breaker.
        max_cost: Stop before the price, earlier runs included, exceeds this; None = no limit.
        on_progress: Called with queries done, queries in all, and the price so far.
    """

    client: ChatClassifierClient
    store: ScoreStore = field(default_factory=ScoreStore)
    settings: RerankSettings = field(default_factory=RerankSettings)
    max_cost: float | None = None
    on_progress: Callable[[int, int, float], None] = ignore_progress

    @property
    def run_key(self) -> str:
        """Key of its runs in the ledger."""
        identity = self.client.model_identity
        return json.dumps(["classify", identity.provider, identity.model, identity.endpoint])

    @property
    def ledger(self) -> dict[str, Any]:
        """Calls, tokens, price and latency of all its runs."""
        return summarize_events(self.store.read_events(self.run_key))

    def classify(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        """One answer per text; equal texts are asked once.

        Raises:
            ConfigError: The key is missing.
            ProviderError: The server refuses, as for a wrong key or an unknown model.
            CostLimitError: The limit of the price was reached; answers are stored.
        """
        # The ledger counts retries; without a handler each would print its event's bare name.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        distinct = list(dict.fromkeys(texts))
        answers = dict(zip(distinct, asyncio.run(self._classify_all(distinct)), strict=True))
        return [answers[text] for text in texts]

    async def _classify_all(self, texts: Sequence[str]) -> list[ClassifiedQuery]:
        spent = sum_booked_costs(self.store.read_events(self.run_key))
        budget = Budget(self.max_cost, spent)
        answers: dict[str, ClassifiedQuery] = {}
        errors: list[FusionBenchError] = []
        waiting = iter(texts)
        async with self.client.connect(self.store) as reranker:
            session = ProviderSession(
                reranker,
                self.settings,
                provider=self.client,
                store=self.store,
                run=self.run_key,
                budget=budget,
            )

            async def classify_waiting() -> None:
                """Take one query after the other until an error stops all workers."""
                while not errors and (text := next(waiting, None)) is not None:
                    try:
                        answers[text] = await self._classify_one(session, text)
                    except FusionBenchError as error:
                        errors.append(error)
                    self.on_progress(len(answers), len(texts), budget.spent)

            workers = (classify_waiting() for _ in range(2 * self.client.concurrency))
            await asyncio.gather(*workers)
        if errors:
            raise errors[0]
        return [answers[text] for text in texts]

    async def _classify_one(self, session: ProviderSession, text: str) -> ClassifiedQuery:
        if not text.strip():
            return make_failure(text, "the query has no text")
        try:
            await session.score_documents(text, TYPES)
        except CostLimitError:
            raise
        except ProviderError as error:
            if error.kind == "refused" and self.settings.strict:
                raise
            return make_failure(text, f"{error.kind}: {error}")
        stored = self.store.read_answer(self.client.model_identity, text)
        if stored is None:
            return make_failure(text, "the answer is not in the store")
        answer = ModelAnswer.model_validate_json(stored)
        classification = make_classification(
            text,
            answer.type,
            answer.confidence,
            entities=answer.entities,
            expanded=answer.expanded_queries,
        )
        return ClassifiedQuery(classification)


def make_client(changes: Sequence[str], *, is_limited: bool) -> ChatClassifierClient:
    """The endpoint that ``KEY=VALUE`` describes.

    Args:
        changes: Keys of :class:`ChatClassifierClient`; ``model`` is needed.
        is_limited: Whether the price is limited, so that it has to be known.

    Raises:
        ConfigError: A key or a value breaks a rule, or the price is not known.
    """
    try:
        client = parse_model(ChatClassifierClient, set_options({"method": "chat"}, changes))
    except ConfigError as error:
        raise ConfigError(f"{error} (set it with --set KEY=VALUE)") from None
    if is_limited and client.price is None:
        raise ConfigError(
            f"--max-cost needs the price of {client.model_identity.label}: give it with --set "
            "price.per_million_tokens=… and price.per_million_output_tokens=…"
        )
    return client

"""A chain of providers: which one scores a query when another fails.

=================  ==================================================================
connection, 5xx    the next provider; after the last, the fused order
timeout            the fused order, or the next provider with ``on_timeout: next``
429                waits and retries; then the fused order
malformed answer   the fused order, logged as an error
breaker open       the next provider
=================  ==================================================================

All scores of a query come from one provider: the next one scores all of its documents.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.rerank.calls.session import ProviderSession, RerankAnswer
from fusion_bench.rerank.protocol import Identity
from fusion_bench.rerank.settings import RerankSettings

log = logging.getLogger("fusion_bench.rerank")

#: Failures after which the next provider is asked.
PASSED_ON: frozenset[FailureKind] = frozenset({"connection", "server", "breaker"})


class ProviderChain:
    """Providers in the order they are asked.

    Args:
        sessions: The first one is preferred.
        settings: What happens on a timeout and on a refusal.

    Raises:
        ConfigError: No provider, or score spaces that cannot share a list.
    """

    def __init__(self, sessions: Sequence[ProviderSession], settings: RerankSettings) -> None:
        if not sessions:
            raise ConfigError("a chain of rerankers needs at least one provider")
        self.sessions, self._settings = tuple(sessions), settings
        spaces = {session.identity.space for session in sessions}
        if len(spaces) > 1 and not spaces <= {"unit", "logit", "log_prob"}:
            raise ConfigError(
                f"the score spaces of a chain have no common scale: {', '.join(sorted(spaces))}; "
                "choose providers of one space, or of unit, logit and log_prob"
            )

    @property
    def first_identity(self) -> Identity:
        """Identity of the first provider."""
        return self.sessions[0].identity

    @property
    def score_space(self) -> ScoreSpace:
        """The score space of the list: the providers' own, or ``unit``."""
        spaces = {session.identity.space for session in self.sessions}
        return spaces.pop() if len(spaces) == 1 else "unit"

    async def score_documents(
        self, query: str, documents: Sequence[str], deadline: float | None = None
    ) -> RerankAnswer:
        """Ask the providers in order until one returns scores.

        Args:
            query: The query.
            documents: Texts of the candidates, best first.
            deadline: Seconds for all providers together, waiting and retries included.

        Raises:
            ProviderError: A refusal, when settings are strict.
            CostLimitError: A call could exceed the cost limit.
        """
        failures: list[tuple[str, FailureKind]] = []
        started = time.monotonic()
        for session in self.sessions:
            left = None if deadline is None else started + deadline - time.monotonic()
            if left is not None and left <= 0:
                log.warning("%s: no time left to ask", session.identity.label)
                failures.append((session.identity.label, "timeout"))
                break
            try:
                answer = await session.score_documents(query, documents, left)
                return replace(answer, failures=tuple(failures))
            except ProviderError as error:
                if error.kind in {"refused", "too_large"} and self._settings.strict:
                    raise
                is_mistake = error.kind in {"malformed", "refused"}
                log.log(logging.ERROR if is_mistake else logging.WARNING, "%s", error)
                failures.append((session.identity.label, error.kind))
                is_passed_on = error.kind == "timeout" and self._settings.on_timeout == "next"
                if not is_passed_on and error.kind not in PASSED_ON:
                    break
        return RerankAnswer(failures=tuple(failures))

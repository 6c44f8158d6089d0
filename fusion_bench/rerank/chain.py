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
from collections.abc import Sequence
from dataclasses import dataclass

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.io.provenance import FUSED_ORDER
from fusion_bench.rerank.protocol import Identity
from fusion_bench.rerank.session import ProviderSession
from fusion_bench.rerank.settings import RerankSettings

log = logging.getLogger("fusion_bench.rerank")

#: Failures after which the next provider is asked.
PASSED_ON: frozenset[FailureKind] = frozenset({"connection", "server", "breaker"})


@dataclass(frozen=True)
class RerankAnswer:
    """One query's scores and how they came about.

    Attributes:
        scores: One per document; None = keep the fused order.
        identity: The model that gave them; None = no provider did.
        failures: Providers that failed before, and how.
        documents_asked: Documents that were not in the store.
    """

    scores: tuple[float, ...] | None
    identity: Identity | None
    failures: tuple[tuple[str, FailureKind], ...] = ()
    documents_asked: int = 0

    @property
    def provider_label(self) -> str:
        """``provider/model``, or ``fused order``."""
        return FUSED_ORDER if self.identity is None else self.identity.label

    @property
    def degraded_reason(self) -> str:
        """Why these are not the first provider's scores; empty if they are."""
        if not self.failures:
            return ""
        failures = ", ".join(f"{who}: {kind}" for who, kind in self.failures)
        return f"{self.provider_label} after {failures}"


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
            deadline: Seconds for each provider.

        Raises:
            ProviderError: A refusal, when settings are strict.
            CostLimitError: A call could exceed the cost limit.
        """
        failures: list[tuple[str, FailureKind]] = []
        for session in self.sessions:
            try:
                scored = await session.score_documents(query, documents, deadline)
            except ProviderError as error:
                self._log_failure(error)
                failures.append((session.identity.label, error.kind))
                if not self._passes_on(error.kind):
                    break
            else:
                return RerankAnswer(
                    scored.scores, scored.identity, tuple(failures), scored.documents_asked
                )
        return RerankAnswer(None, None, tuple(failures))

    def _passes_on(self, kind: FailureKind) -> bool:
        timeout = kind == "timeout" and self._settings.on_timeout == "next"
        return timeout or kind in PASSED_ON

    def _log_failure(self, error: ProviderError) -> None:
        if error.kind in {"refused", "too_large"} and self._settings.strict:
            raise error
        level = logging.ERROR if error.kind in {"malformed", "refused"} else logging.WARNING
        log.log(level, "%s", error)

"""The live pipeline's settings, by profile: the bench waits, production does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.rerank.breaker import BreakerRules

__all__ = ["Deadline", "Profile", "RerankSettings", "RetryRules"]

Profile: TypeAlias = Literal["bench", "production"]
Milliseconds = Annotated[float, Field(gt=0)]


class RetryRules(StrictModel):
    """How often, and after how long, a call is made again.

    Attributes:
        attempts: Calls in all.
        wait_initial: Seconds before the second; each further wait doubles, plus jitter.
        wait_max: No wait is longer; a provider that asks for more is not asked again.
        wait_jitter: Up to so many seconds more, by chance, so that clients do not come together.
        failure_kinds: The failures after which it makes sense.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"on": "'on' is now 'failure_kinds'"}

    attempts: Annotated[int, Field(ge=1)] = 5
    wait_initial: Annotated[float, Field(ge=0)] = 1.0
    wait_max: Annotated[float, Field(ge=0)] = 60.0
    wait_jitter: Annotated[float, Field(ge=0)] = 1.0
    failure_kinds: tuple[Literal["rate_limit", "connection", "server", "timeout"], ...] = (
        "rate_limit",
    )


class Deadline(StrictModel):
    """The deadline of a query, in milliseconds.

    Attributes:
        rerank_ms: For the reranking.
        total_ms: For the whole query; what came before the reranking is taken off.
    """

    rerank_ms: Milliseconds = 100.0
    total_ms: Milliseconds = 300.0

    def remaining_ms(self, elapsed_ms: float) -> float:
        """Milliseconds that the reranking may take; at most 0 = there is no time for it."""
        return min(self.rerank_ms, self.total_ms - elapsed_ms)


class RerankSettings(StrictModel):
    """What happens to the candidates of a query (nablarch's reranking design).

    Attributes:
        max_candidates: The best so many are reranked, after duplicates were dropped.
        timeout_ms: For one call, each retry anew.
        deadline: The time limit for the whole of it, waiting and retries included; None = none.
        min_score: Documents below this, on the unit scale, are dropped.
        top_k: So many are returned; None = all.
        always_rerank: False = a query with at most ``skip_limit`` candidates is left alone.
        skip_limit: See ``always_rerank``.
        on_timeout: ``fused`` = keep the fused order at once (the design's 6.1); ``next`` = try the
            next provider (its 6.2).
        strict: A refusal (wrong key, unknown model) is an error, and does not become fused order.
        retry: How calls are made again.
        breaker: When a provider is left alone.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"budget": "'budget' is now 'deadline'"}

    max_candidates: Annotated[int, Field(ge=1)] = 50
    timeout_ms: Milliseconds = 60_000.0
    deadline: Deadline | None = None
    min_score: float | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    always_rerank: bool = True
    skip_limit: Annotated[int, Field(ge=0)] = 10
    on_timeout: Literal["fused", "next"] = "fused"
    strict: bool = True
    retry: RetryRules = RetryRules(failure_kinds=("rate_limit", "connection", "server"))
    breaker: BreakerRules = BreakerRules()

    @classmethod
    def for_profile(cls, profile: Profile) -> RerankSettings:
        """``bench``: patient and strict. ``production``: the design's figures."""
        if profile == "bench":
            return cls()
        return cls(
            timeout_ms=100.0,
            deadline=Deadline(),
            min_score=0.1,
            top_k=10,
            always_rerank=False,
            strict=False,
            retry=RetryRules(wait_initial=0.01, wait_max=0.1, wait_jitter=0.01),
        )

"""Settings of reranking, by profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.rerank.breaker import BreakerRules

Profile: TypeAlias = Literal["bench", "production"]
Milliseconds = Annotated[float, Field(gt=0)]


class RetryRules(StrictModel):
    """When a call is repeated.

    Attributes:
        attempts: Most calls in all.
        wait_initial: Seconds before the second call; each further wait doubles, plus jitter.
        wait_max: Longest wait; a provider that asks for more is not called again.
        wait_jitter: Most random seconds added to each wait.
        failure_kinds: Failures after which a call is repeated.
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
    """Time limit of a query, in milliseconds.

    Attributes:
        rerank_ms: For the reranking.
        total_ms: For the whole query, including the time before the reranking.
    """

    rerank_ms: Milliseconds = 100.0
    total_ms: Milliseconds = 300.0

    def remaining_ms(self, elapsed_ms: float) -> float:
        """Milliseconds left for the reranking; 0 or less = none."""
        return min(self.rerank_ms, self.total_ms - elapsed_ms)


class RerankSettings(StrictModel):
    """How the candidates of a query are reranked.

    Attributes:
        max_candidates: Most candidates, without duplicates.
        timeout_ms: Time limit of one call.
        deadline: Time limit of the reranking with waiting and retries; None = none.
        min_score: Documents below this, on the unit scale, are dropped; None = none.
        top_k: Most documents returned; None = all.
        always_rerank: False = a query with at most ``skip_limit`` candidates is not reranked.
        skip_limit: See ``always_rerank``.
        on_timeout: ``fused`` = keep the fused order; ``next`` = ask the next provider.
        strict: True = a refusal (wrong key, unknown model) is an error; False = it leads to the
            fused order.
        retry: When a call is repeated.
        breaker: When the circuit breaker opens and closes.
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
        """``bench``: long timeouts, strict. ``production``: within 100 ms, never an error."""
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

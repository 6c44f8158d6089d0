"""Settings of reranking, by profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from fusion_bench.config.models import StrictModel

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


class BreakerRules(StrictModel):
    """When the breaker opens and closes.

    Attributes:
        failures: Failures in a row that open it.
        open_seconds: How long no call is admitted.
        half_open_calls: Calls that are then admitted; it closes when all succeed.
    """

    failures: Annotated[int, Field(ge=1)] = 5
    open_seconds: Annotated[float, Field(gt=0)] = 30.0
    half_open_calls: Annotated[int, Field(ge=1)] = 3


class Deadline(StrictModel):
    """Time limit of a query, in milliseconds.

    Attributes:
        rerank_ms: For the reranking; where it is given, at most ``total_ms``.
        total_ms: For the whole query, including the time before the reranking.
    """

    rerank_ms: Milliseconds = 100.0
    total_ms: Milliseconds = 300.0

    @model_validator(mode="after")
    def _check_total(self) -> Deadline:
        if "rerank_ms" in self.model_fields_set and self.rerank_ms > self.total_ms:
            raise ValueError(
                f"rerank_ms {self.rerank_ms:g} exceeds total_ms {self.total_ms:g}, which covers "
                "the reranking: raise total_ms, or lower rerank_ms"
            )
        return self

    def remaining_ms(self, elapsed_ms: float) -> float:
        """Milliseconds left for the reranking; 0 or less = none."""
        return min(self.rerank_ms, self.total_ms - elapsed_ms)


class RerankSettings(StrictModel):
    """How a chain of providers is asked for the scores of a query.

    Which candidates are reranked, and what becomes of their scores, is the system's matter:
    ``blend.depth``, ``blend.min_score``, ``blend.always_rerank``, ``blend.skip_limit``, ``top_k``.

    Attributes:
        timeout_ms: Time limit of one call.
        deadline: Time limit of the reranking with waiting and retries; None = none.
        on_timeout: ``fused`` = keep the fused order; ``next`` = ask the next provider.
        strict: True = a refusal (wrong key, unknown model) is an error; False = it leads to the
            fused order.
        retry: When a call is repeated.
        breaker: When the circuit breaker opens and closes.
    """

    old_keys: ClassVar[Mapping[str, str]] = {
        "budget": "'budget' is now 'deadline'",
        "max_candidates": "'max_candidates' is now the system's blend.depth",
        "min_score": "'min_score' is now the system's blend.min_score",
        "top_k": "'top_k' is now the system's top_k",
        "always_rerank": "'always_rerank' is now the system's blend.always_rerank",
        "skip_limit": "'skip_limit' is now the system's blend.skip_limit",
    }

    timeout_ms: Milliseconds = 60_000.0
    deadline: Deadline | None = None
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
            strict=False,
            retry=RetryRules(wait_initial=0.01, wait_max=0.1, wait_jitter=0.01),
        )

"""The live pipeline's settings, by profile: the bench waits, production does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from fusion_bench.config.models import StrictModel
from fusion_bench.rerank.breaker import BreakerRules

__all__ = ["Budget", "Profile", "Retry", "Settings"]

Profile: TypeAlias = Literal["bench", "production"]
Milliseconds = Annotated[float, Field(gt=0)]


class Retry(StrictModel):
    """How often, and after how long, a call is made again.

    Attributes:
        attempts: Calls in all.
        wait_initial: Seconds before the second; each further wait doubles, plus jitter.
        wait_max: No wait is longer; a provider that asks for more is not asked again.
        wait_jitter: Up to so many seconds more, by chance, so that clients do not come together.
        failure_kinds: The failures after which it makes sense.
    """

    attempts: Annotated[int, Field(ge=1)] = 5
    wait_initial: Annotated[float, Field(ge=0)] = 1.0
    wait_max: Annotated[float, Field(ge=0)] = 60.0
    wait_jitter: Annotated[float, Field(ge=0)] = 1.0
    failure_kinds: tuple[Literal["rate_limit", "connection", "server", "timeout"], ...] = (
        "rate_limit",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_the_old_key(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        # YAML 1.1 reads a bare `on` as true, so that the old key had to be quoted.
        if isinstance(data, Mapping) and ("on" in data or True in data):
            raise PydanticCustomError(
                "unknown_key",
                "'on', which YAML reads as true, is now called 'failure_kinds': write "
                "'failure_kinds: [rate_limit, connection, server]'",
                {"key": "on"},
            )
        return data


class Budget(StrictModel):
    """The deadline of a query, in milliseconds.

    Attributes:
        rerank_ms: For the reranking.
        total_ms: For the whole query; what came before the reranking is taken off.
    """

    rerank_ms: Milliseconds = 100.0
    total_ms: Milliseconds = 300.0

    def left(self, elapsed_ms: float) -> float:
        """Milliseconds that the reranking may take; at most 0 = there is no time for it."""
        return min(self.rerank_ms, self.total_ms - elapsed_ms)


class Settings(StrictModel):
    """What happens to the candidates of a query (nablarch's reranking design).

    Attributes:
        max_candidates: The best so many are reranked, after duplicates were dropped.
        timeout_ms: For one call, each retry anew.
        budget: The deadline for the whole of it, waiting and retries included; None = none.
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

    max_candidates: Annotated[int, Field(ge=1)] = 50
    timeout_ms: Milliseconds = 60_000.0
    budget: Budget | None = None
    min_score: float | None = None
    top_k: Annotated[int, Field(ge=1)] | None = None
    always_rerank: bool = True
    skip_limit: Annotated[int, Field(ge=0)] = 10
    on_timeout: Literal["fused", "next"] = "fused"
    strict: bool = True
    retry: Retry = Retry(failure_kinds=("rate_limit", "connection", "server"))
    breaker: BreakerRules = BreakerRules()

    @classmethod
    def of(cls, profile: Profile) -> Settings:
        """``bench``: patient and strict. ``production``: the design's figures."""
        if profile == "bench":
            return cls()
        return cls(
            timeout_ms=100.0,
            budget=Budget(),
            min_score=0.1,
            top_k=10,
            always_rerank=False,
            strict=False,
            retry=Retry(wait_initial=0.01, wait_max=0.1, wait_jitter=0.01),
        )

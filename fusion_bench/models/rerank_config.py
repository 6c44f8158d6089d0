"""The configuration of a reranking: providers, their order, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.removed_names import describe_gone
from fusion_bench.config.yaml_files import read_yaml
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.overrides import merge_mappings, set_options
from fusion_bench.models.endpoints import REPEATED, RetryRules
from fusion_bench.models.rerankers import Provider, providers

Profile: TypeAlias = Literal["bench", "production"]
Milliseconds = Annotated[float, Field(gt=0)]


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
    retry: RetryRules = RetryRules(failure_kinds=REPEATED)
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


#: A provider by its method's name, or as a mapping with ``method``.
ProviderField: TypeAlias = Annotated[
    SerializeAsAny[Provider], BeforeValidator(providers.validate_field)
]


class RerankConfig(StrictModel):
    """What ``--config`` says.

    Attributes:
        providers: Providers by name.
        chain: Names of providers in the order they are asked.
        profile: Settings to start from, see :meth:`RerankSettings.for_profile`.
        settings: Settings that replace the profile's.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"simulation": describe_gone("simulation:")}

    providers: dict[str, ProviderField] = Field(default_factory=dict)
    chain: tuple[str, ...] = ()
    profile: Profile = "bench"
    settings: dict[str, Any] = Field(default_factory=dict)

    def resolved_settings(self, where: str = "settings") -> RerankSettings:
        """The profile's settings, with the given ones in place of theirs."""
        return merge_settings(self.profile, self.settings, where)

    def live_settings(self) -> RerankSettings:
        """What a service assumes: the production profile unless another one is named."""
        profile = self.profile if "profile" in self.model_fields_set else "production"
        return self.model_copy(update={"profile": profile}).resolved_settings()


def merge_settings(
    profile: Profile, given: Mapping[str, Any], where: str = "settings"
) -> RerankSettings:
    """The settings of a profile, with the given ones in place of theirs.

    Args:
        profile: The profile.
        given: Settings as YAML says them.
        where: Prefix of messages.

    Raises:
        ConfigError: A setting breaks a rule.
    """
    start = RerankSettings.for_profile(profile)
    base = start.model_dump()
    if start.deadline is not None:  # what a profile leaves open gives way to what is given
        base["deadline"] = start.deadline.model_dump(exclude_unset=True)
    data = merge_mappings(base, given)
    return parse_model(RerankSettings, data, where)


def read_rerank_config(path: Path | None) -> RerankConfig:
    """Read a configuration file; None = all defaults.

    Raises:
        ConfigError: It breaks a rule; names file, line and path.
    """
    if path is None:
        return RerankConfig()
    source = read_yaml(path)
    config = parse_model(RerankConfig, source.data, source.where)
    for i, name in enumerate(config.chain):
        if name not in config.providers:
            where = source.where(("chain", i))
            raise UnknownNameError("provider", name, config.providers, where=where)
    config.resolved_settings(source.where(("settings",)))
    return config


def select_providers(
    config: RerankConfig, wanted: str | None, fallbacks: Sequence[str], changes: Sequence[str]
) -> list[Provider]:
    """The providers to ask, in order.

    Args:
        config: What the file says.
        wanted: Name in the file, a method, or ``package.module:Class``; None = the file's chain.
        fallbacks: The same, for when the first fails.
        changes: ``KEY=VALUE`` for the first provider.

    Raises:
        ConfigError: No provider is named, or a name or a value is wrong.
    """
    names = [*config.chain] if wanted is None else [wanted, *fallbacks]
    if not names:
        raise ConfigError(
            f"no provider: name one with --provider (known: {', '.join(_provider_names(config))}), "
            "or give 'chain' in --config"
        )
    chosen = []
    for i, name in enumerate(names):
        given = {"method": name}
        if name in config.providers:
            configured = config.providers[name]
            given = configured.model_dump(exclude_unset=True) | {"method": configured.method}
        elif ":" not in name and name not in providers.load_all():
            raise UnknownNameError("provider", name, _provider_names(config))
        try:
            chosen.append(providers.build(set_options(given, () if i else changes)))
        except ConfigError as error:
            raise ConfigError(f"provider {name!r}: {error} (set it with --set KEY=VALUE)") from None
    return chosen


def _provider_names(config: RerankConfig) -> list[str]:
    return sorted({*config.providers, *providers.load_all()})

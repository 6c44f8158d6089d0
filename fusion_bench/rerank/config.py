"""Which providers, in which order, by which rules: a YAML file, or a name on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import BeforeValidator, Field, SerializeAsAny

from fusion_bench.config.models import StrictModel, read_yaml, validated
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.rerank.clients import Provider, providers
from fusion_bench.rerank.settings import Profile, RerankSettings
from fusion_bench.rerank.simulation.fault_model import SimulationSettings

__all__ = ["RerankConfig", "apply_overrides", "read_rerank_config", "select_providers"]

#: A provider by its method's name, or as a mapping with ``method``.
ProviderField: TypeAlias = Annotated[
    SerializeAsAny[Provider], BeforeValidator(providers.validate_field)
]


class RerankConfig(StrictModel):
    """What ``--config`` says.

    Attributes:
        providers: By a name of one's own.
        chain: Names in the order they are asked; the first is the wanted one.
        profile: ``bench`` waits and is strict, ``production`` has the design's figures.
        settings: Single settings instead of the profile's.
        simulation: For ``--simulate``.
    """

    providers: dict[str, ProviderField] = Field(default_factory=dict)
    chain: tuple[str, ...] = ()
    profile: Profile = "bench"
    settings: dict[str, Any] = Field(default_factory=dict)
    simulation: SimulationSettings = SimulationSettings()

    def resolved_settings(self, where: str = "settings") -> RerankSettings:
        """The profile's settings with the single ones put in."""
        base = RerankSettings.for_profile(self.profile).model_dump()
        return validated(
            RerankSettings,
            _merge_mappings(base, self.settings),
            lambda place: ".".join((where, *(str(part) for part in place))),
        )


def _merge_mappings(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` over ``base``, mappings key by key."""
    merged = dict(base)
    for key, value in given.items():
        inside = merged.get(key)
        both = isinstance(inside, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge_mappings(inside, value) if both else value  # type: ignore[arg-type]
    return merged


def read_rerank_config(path: Path | None) -> RerankConfig:
    """Read a configuration; without a file everything is by default.

    Raises:
        ConfigError: It breaks a rule; names file, line and path.
    """
    if path is None:
        return RerankConfig()
    source = read_yaml(path)
    config = validated(RerankConfig, source.data, source.where)
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
        wanted: A name of the file or of a method; None = the file's chain.
        fallbacks: The same, for when the first fails.
        changes: ``key=value`` for the first provider.

    Raises:
        ConfigError: Nobody is named, or a name or a value is wrong.
    """
    names = [*config.chain] if wanted is None else [wanted, *fallbacks]
    if not names:
        raise ConfigError(
            f"no provider: name one with --provider (known: {', '.join(_provider_names(config))}), "
            "or give 'chain' in --config"
        )
    first, *rest = names
    return [
        _build_provider(config, first, changes),
        *(_build_provider(config, name, ()) for name in rest),
    ]


def _provider_names(config: RerankConfig) -> list[str]:
    return sorted({*config.providers, *providers.load_all()})


def _build_provider(config: RerankConfig, name: str, changes: Sequence[str]) -> Provider:
    if name in config.providers:
        given = config.providers[name].model_dump(exclude_unset=True)
        given["method"] = config.providers[name].method
    elif name in providers.load_all():
        given = {"method": name}
    else:
        raise UnknownNameError("provider", name, _provider_names(config))
    try:
        return providers.build(apply_overrides(given, changes))
    except ConfigError as error:
        raise ConfigError(f"provider {name!r}: {error} (set it with --set KEY=VALUE)") from None


def apply_overrides(given: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """A configuration with ``key=value`` or ``key.key=value`` put in; values are YAML.

    Raises:
        ConfigError: A change that is none.
    """
    data = dict(given)
    for change in changes:
        path, equals, value = change.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(f"--set {change!r}: KEY=VALUE is needed, such as model=rerank-2")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"--set {change!r}: the value is not YAML: quote it") from None
        for key in reversed(keys):
            read = {key: read}
        data = _merge_mappings({k: v if v is not None else {} for k, v in data.items()}, read)
    return data

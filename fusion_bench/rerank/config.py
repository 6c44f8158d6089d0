"""The configuration of a reranking: providers, their order, settings, simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, SerializeAsAny

from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.method_options import merge_mappings, set_options
from fusion_bench.rerank.clients import Provider, providers
from fusion_bench.rerank.settings import Profile, RerankSettings
from fusion_bench.rerank.simulation.fault_model import SimulationSettings

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
        simulation: What ``--simulate`` simulates.
    """

    providers: dict[str, ProviderField] = Field(default_factory=dict)
    chain: tuple[str, ...] = ()
    profile: Profile = "bench"
    settings: dict[str, Any] = Field(default_factory=dict)
    simulation: SimulationSettings = SimulationSettings()

    def resolved_settings(self, where: str = "settings") -> RerankSettings:
        """The profile's settings, with the given ones in place of theirs."""
        return merge_settings(self.profile, self.settings, where)

    def simulated_settings(self) -> RerankSettings:
        """What a simulation assumes: the production profile unless settings are given."""
        production = RerankSettings.for_profile("production")
        return self.resolved_settings() if self.settings else production

    def live_settings(self) -> RerankSettings:
        """What a service assumes: the production profile unless another one is named."""
        profile = self.profile if "profile" in self.model_fields_set else "production"
        return self.model_copy(update={"profile": profile}).resolved_settings()

    def override_simulation(self, changes: Sequence[str]) -> SimulationSettings:
        """The simulation with ``KEY=VALUE`` put in.

        Raises:
            ConfigError: A change breaks a rule.
        """
        data = set_options(self.simulation.model_dump(), changes)
        return parse_model(
            SimulationSettings, data, lambda path: f"--set {'.'.join(map(str, path))}"
        )


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
    return parse_model(RerankSettings, data, lambda path: ".".join(map(str, (where, *path))))


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
    return [
        _build_provider(config, name, changes if i == 0 else ()) for i, name in enumerate(names)
    ]


def _provider_names(config: RerankConfig) -> list[str]:
    return sorted({*config.providers, *providers.load_all()})


def _build_provider(config: RerankConfig, name: str, changes: Sequence[str]) -> Provider:
    given = {"method": name}
    if name in config.providers:
        configured = config.providers[name]
        given = configured.model_dump(exclude_unset=True) | {"method": configured.method}
    elif ":" not in name and name not in providers.load_all():
        raise UnknownNameError("provider", name, _provider_names(config))
    try:
        return providers.build(set_options(given, changes))
    except ConfigError as error:
        raise ConfigError(f"provider {name!r}: {error} (set it with --set KEY=VALUE)") from None

"""Check what a pipeline is made of before the first query: a tuned system and its limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from fusion_bench.config.models import parse_model
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import apply_switch, is_v2_enabled
from fusion_bench.experiment.settings import CragRule
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import Blend, RerankBlend
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.models import rerank_config
from fusion_bench.models.reranker_protocol import Reranker
from fusion_bench.models.rerankers import Provider, providers
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.serving.live.query_lists import ListRules, Source
from fusion_bench.serving.live.rerankers import ChainConfig, RerankerLike


def apply_limit(system: System, limit: int) -> System:
    """The system that returns at most so many documents.

    Unless a blend says ``always_rerank``, a query with at most so many candidates is not reranked
    (CONV-07-05).

    Args:
        system: The system.
        limit: Documents, at least 1.

    Raises:
        ConfigError: The limit is less than 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"limit: a whole number from 1 on is needed, given {limit!r}")

    def change(blend: Blend) -> Blend:
        if not isinstance(blend, RerankBlend) or blend.always_rerank:
            return blend
        return blend.model_copy(update={"skip_limit": limit})

    return _replace_blends(system, change).model_copy(update={"top_k": limit})


def without_reranking(system: System) -> System:
    """The system that keeps the fused order, its stages too."""
    changed = _replace_blends(system, lambda _: NoBlend())
    if system.stages is None:
        return changed
    stages = {name: without_reranking(stage) for name, stage in system.stages.items()}
    return changed.model_copy(update={"stages": stages})


def _replace_blends(system: System, change: Callable[[Blend], Blend]) -> System:
    """The system with its blend, and those of its query types or intents, changed."""
    changed = system.model_copy(update={"blend": change(system.blend)})
    if system.class_configs is None:
        return changed
    parts = {
        name: part.model_copy(update={"blend": change(part.blend)})
        for name, part in system.class_configs.items()
    }
    return changed.model_copy(update={system.class_field: parts})


@dataclass(frozen=True)
class PipelineConfig:
    """A system, and who gives its lists and its scores.

    Attributes:
        system: The system, fitted.
        rules: How lists are read.
        spaces: Score space of each rerank list that may be handed over.
        chains: Who scores each rerank list.
        retrievers: Who returns the list of a source, by name.
        settings: Of rerankers that have none of their own.
        crag: Thresholds of CRAG's verdict; None = no verdict.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said; false = v2 runs as v1.
        keeps_unread: Whether an answer of which no score could be read counts: 0.5 each.
    """

    system: System
    rules: ListRules
    spaces: Mapping[str, ScoreSpace]
    chains: Mapping[str, ChainConfig]
    retrievers: Mapping[str, Source]
    settings: rerank_config.RerankSettings
    crag: CragRule | None = None
    v2_enabled: bool = True
    keeps_unread: bool = False

    def __post_init__(self) -> None:
        system = self.system
        for name, space in self.spaces.items():
            if space not in get_args(ScoreSpace):
                raise UnknownNameError(
                    "score space", space, get_args(ScoreSpace), where=f"score_spaces: {name}"
                )
        if self.rules.ties not in get_args(Ties):
            raise UnknownNameError("tie rule", self.rules.ties, get_args(Ties), where="ties")
        if needs_fitting(system):
            raise ConfigError(
                f"system {system.name!r} is trained and not fitted: Pipeline.from_experiment fits "
                "it to the dataset's judgments"
            )
        _check_abstain(system)
        for name in self.chains:
            if name not in system.reranker_names:
                known = system.reranker_names
                raise UnknownNameError("reranker", name, known, where="rerankers")
        for name in self.retrievers:
            self.check_name(name)
        roles = {name: self.rules.roles.get(name, frozenset()) for name in system.base_runs}
        for location, problem in system.find_misfits(roles, (*system.reranker_names,)):
            place = ".".join(map(str, (system.name, *location)))
            raise ConfigError(f"{place}: {problem}")

    def check_name(self, name: str) -> None:
        """Refuse a list that the system does not read.

        Raises:
            UnknownNameError: It is neither a source nor a rerank list.
        """
        known = (*self.system.base_runs, *sorted(self.system.reranker_names))
        if name not in known:
            raise UnknownNameError("list", name, known)

    def choose_sources(
        self, lists: Mapping[str, Source], off: Collection[str]
    ) -> dict[str, Source]:
        """The source of every list for one query, those handed over first, in their order.

        Args:
            lists: What was handed over.
            off: Sources that are switched off, which are left out.

        Raises:
            ConfigError: A list is missing or unknown.
        """
        for name in lists:
            self.check_name(name)
        rest = {name: given for name, given in self.retrievers.items() if name not in lists}
        sources = {name: given for name, given in {**lists, **rest}.items() if name not in off}
        for name in self.system.base_runs:
            if name not in sources and name not in off:
                raise ConfigError(
                    f"no list {name!r}: hand it over, [] where it returned nothing, or give the "
                    f"pipeline retrievers={{{name!r}: …}}"
                )
        return sources


def _check_abstain(system: System) -> None:
    """Refuse a threshold that is not known, or on a signal that the system has no more."""
    if system.abstain is None:
        return
    system.abstain.find_threshold(system.name)
    if system.abstain.signal not in system.signals:
        raise ConfigError(
            f"system {system.name!r}: abstain needs {system.abstain.signal!r}, and reranking is "
            "off: turn it on, or remove 'abstain'"
        )


def configure_pipeline(
    system: System | Mapping[str, Any],
    rules: ListRules,
    *,
    rerankers: Mapping[str, RerankerLike] | None = None,
    retrievers: Mapping[str, Source] | None = None,
    settings: rerank_config.RerankSettings | Mapping[str, Any] | None = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    crag: CragRule | Mapping[str, Any] | None = None,
    enabled: bool = True,
) -> PipelineConfig:
    """The configuration of a pipeline; arguments as for ``Pipeline``.

    Raises:
        ConfigError: The system is not fitted, or does not fit its sources.
    """
    given = apply_switch(system if isinstance(system, System) else parse_system(system))
    chosen = (
        settings
        if isinstance(settings, rerank_config.RerankSettings)
        else rerank_config.merge_settings("production", settings or {})
    )
    chains: dict[str, ChainConfig] = {}
    for name, chain in (rerankers or {}).items() if enabled else ():
        try:
            chains[name] = _read_chain(chain, chosen)
        except ConfigError as error:
            raise ConfigError(f"rerankers: {name}: {error}") from None
    return PipelineConfig(
        system=given if enabled else without_reranking(given),
        rules=rules,
        spaces=dict(score_spaces or {}),
        chains=chains,
        retrievers=dict(retrievers or {}),
        settings=chosen,
        crag=crag
        if crag is None or isinstance(crag, CragRule)
        else parse_model(CragRule, crag, "crag"),
        v2_enabled=is_v2_enabled(),
    )


def parse_system(keys: Mapping[str, Any]) -> System:
    """A system from its keys as in YAML, which may leave out its name.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    if not isinstance(keys, Mapping):
        raise ConfigError(f"system: give a System or its keys as in YAML, not {keys!r:.80}")
    name = str(keys.get("name", "live"))
    return parse_model(System, {**keys, "name": name}, name)


def _read_chain(given: RerankerLike, settings: rerank_config.RerankSettings) -> ChainConfig:
    if isinstance(given, str | os.PathLike) and Path(given).suffix in {".yaml", ".yml"}:
        given = rerank_config.read_rerank_config(Path(given))
    if isinstance(given, rerank_config.RerankConfig):
        return tuple(rerank_config.select_providers(given, None, (), ())), given.live_settings()
    is_several = isinstance(given, Sequence) and not isinstance(given, str)
    items = cast("Sequence[Any]", given) if is_several else [given]
    if not items:
        raise ConfigError("the chain is empty: name at least one provider")
    chain: list[Provider | Reranker] = []
    for item in items:
        if isinstance(item, str | Mapping):
            chain.append(providers.build(item))
        elif isinstance(item, Provider) or all(
            hasattr(item, key) for key in ("identity", "batch", "score")
        ):
            chain.append(cast("Provider | Reranker", item))
        else:
            raise ConfigError(
                f"{item!r:.80} is no reranker: give a provider's method or keys, a YAML file, or "
                "an object with identity, batch and score"
            )
    return tuple(chain), settings

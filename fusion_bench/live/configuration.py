"""What a pipeline is made of, checked before the first query."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from fusion_bench.config.models import Location, parse_model
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.ranking.fitting import needs_fitting
from fusion_bench.experiment.crag_settings import CragRule
from fusion_bench.experiment.system import System
from fusion_bench.experiment.v1_fallback import apply_switch, is_v2_enabled
from fusion_bench.live.limits import without_reranking
from fusion_bench.live.query_lists import ListRules
from fusion_bench.live.rerankers import ChainConfig, RerankerLike, read_chain
from fusion_bench.live.sources import Source
from fusion_bench.rerank.config import merge_settings
from fusion_bench.rerank.settings import RerankSettings


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
    settings: RerankSettings
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


def configure_pipeline(
    system: System | Mapping[str, Any],
    rules: ListRules,
    *,
    rerankers: Mapping[str, RerankerLike] | None = None,
    retrievers: Mapping[str, Source] | None = None,
    settings: RerankSettings | Mapping[str, Any] | None = None,
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
        if isinstance(settings, RerankSettings)
        else merge_settings("production", settings or {})
    )
    chains = rerankers if enabled and rerankers is not None else {}
    return PipelineConfig(
        system=given if enabled else without_reranking(given),
        rules=rules,
        spaces=dict(score_spaces or {}),
        chains={name: read_chain(name, chain, chosen) for name, chain in chains.items()},
        retrievers=dict(retrievers or {}),
        settings=chosen,
        crag=_read_crag(crag),
        v2_enabled=is_v2_enabled(),
    )


def check_options(options: Collection[str]) -> None:
    """Refuse an option of ``Pipeline.from_experiment`` that there is not.

    Raises:
        UnknownNameError: Names the known ones.
    """
    parameters = inspect.signature(configure_pipeline).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise UnknownNameError("option", name, known, where="Pipeline.from_experiment")


def _read_crag(crag: CragRule | Mapping[str, Any] | None) -> CragRule | None:
    if crag is None or isinstance(crag, CragRule):
        return crag
    return parse_model(CragRule, crag, lambda path: ".".join(map(str, ("crag", *path))))


def parse_system(keys: Mapping[str, Any]) -> System:
    """A system from its keys as in YAML, which may leave out its name.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    if not isinstance(keys, Mapping):
        raise ConfigError(f"system: give a System or its keys as in YAML, not {keys!r:.80}")
    name = str(keys.get("name", "live"))

    def where(location: Location) -> str:
        return ".".join((name, *map(str, location)))

    return parse_model(System, {**keys, "name": name}, where)


def read_roles(roles: Mapping[str, Collection[str]] | None) -> dict[str, frozenset[str]]:
    """Roles by name of the source.

    Raises:
        ConfigError: The roles of a source are text, and no list of names.
    """
    for name, names in (roles or {}).items():
        if isinstance(names, str):
            raise ConfigError(f"roles: {name}: give a list of names, such as [{names!r}]")
    return {name: frozenset(names) for name, names in (roles or {}).items()}

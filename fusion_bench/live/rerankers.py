"""The rerankers of a pipeline: what a caller names, and the chains of providers it becomes."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.rerank.calls.chain import ProviderChain
from fusion_bench.rerank.calls.opening import LateReranker, connect_provider
from fusion_bench.rerank.calls.session import UNLIMITED, ProviderSession
from fusion_bench.rerank.clients import HttpProvider, Provider, providers
from fusion_bench.rerank.config import RerankConfig, read_rerank_config, select_providers
from fusion_bench.rerank.protocol import Reranker
from fusion_bench.rerank.recent_scores import RecentScores
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.util.optional_imports import import_optional

log = logging.getLogger("fusion_bench.live")

#: Seconds that a server may take to be connected before the first query.
OPENING_SECONDS = 5.0
#: A provider's method or its keys, an object that scores, several of these in the order they are
#: asked, or a YAML file with ``providers`` and a ``chain``.
RerankerLike: TypeAlias = (
    str | os.PathLike[str] | Mapping[str, Any] | Provider | Reranker | RerankConfig | Sequence[Any]
)


@dataclass(frozen=True)
class ChainConfig:
    """A chain of providers that is not connected yet.

    Attributes:
        providers: In the order they are asked.
        settings: Timeouts, deadline, retries, breaker.
    """

    providers: tuple[Provider | Reranker, ...]
    settings: RerankSettings


def read_chain(name: str, given: RerankerLike, settings: RerankSettings) -> ChainConfig:
    """The chain that a caller names.

    Args:
        name: The rerank list that it stands for.
        given: See :data:`RerankerLike`.
        settings: Where ``given`` has none.

    Raises:
        ConfigError: It is no reranker, or a key of it breaks a rule.
    """
    try:
        return _read_chain(given, settings)
    except ConfigError as error:
        raise ConfigError(f"rerankers: {name}: {error}") from None


def _read_chain(given: RerankerLike, settings: RerankSettings) -> ChainConfig:
    if isinstance(given, str | os.PathLike) and Path(given).suffix in {".yaml", ".yml"}:
        given = read_rerank_config(Path(given))
    if isinstance(given, RerankConfig):
        return ChainConfig(tuple(select_providers(given, None, (), ())), given.live_settings())
    is_several = isinstance(given, Sequence) and not isinstance(given, str)
    items = cast("Sequence[Any]", given) if is_several else [given]
    if not items:
        raise ConfigError("the chain is empty: name at least one provider")
    return ChainConfig(tuple(map(_read_provider, items)), settings)


def _read_provider(given: Any) -> Provider | Reranker:  # noqa: ANN401 - see RerankerLike
    if isinstance(given, str | Mapping):
        return providers.build(given)
    is_reranker = all(hasattr(given, key) for key in ("identity", "batch", "score"))
    if isinstance(given, Provider) or is_reranker:
        return cast("Provider | Reranker", given)
    raise ConfigError(
        f"{given!r:.80} is no reranker: give a provider's method or keys, a YAML file, or an "
        "object with identity, batch and score"
    )


async def open_chains(
    configs: Mapping[str, ChainConfig],
    stack: AsyncExitStack,
    store: RecentScores,
    spaces: Mapping[str, ScoreSpace],
) -> dict[str, ProviderChain]:
    """Connect the providers of all chains; see :func:`open_chain`.

    Args:
        configs: By name of the rerank list.
        stack: Releases what is opened.
        store: Keeps scores and events.
        spaces: Score space of each stored list; another one of its chain is logged.
    """
    chains = {}
    for name, config in configs.items():
        chains[name] = chain = await open_chain(name, config, stack, store)
        if chain.score_space != spaces.get(name, chain.score_space):
            log.warning(
                "reranker %r: its scores are %r, and those of the stored list %r: a blend that was "
                "tuned on these may weigh them otherwise",
                name,
                chain.score_space,
                spaces[name],
            )
    return chains


async def open_chain(
    name: str, config: ChainConfig, stack: AsyncExitStack, store: RecentScores
) -> ProviderChain:
    """Connect the providers of a chain.

    A provider that cannot be reached now is connected when it is first asked, unless the settings
    are strict.

    Args:
        name: The rerank list that it stands for.
        config: The chain.
        stack: Releases what is opened.
        store: Keeps scores and events.

    Raises:
        ConfigError: A key is missing, or the score spaces have no common scale.
        MissingExtraError: A library is missing.
        ProviderError: A provider cannot be reached, and the settings are strict.
    """
    import_optional("stamina", extra="remote", purpose="retrying")  # not within a deadline
    sessions = []
    for provider in config.providers:
        limits: Provider = UNLIMITED
        if isinstance(provider, Provider):
            limits, reranker = provider, await _open_provider(provider, config.settings, stack)
        else:
            reranker = provider
        session = ProviderSession(reranker, config.settings, provider=limits, store=store, run=name)
        sessions.append(session)
    return ProviderChain(sessions, config.settings)


async def _open_provider(
    provider: Provider, settings: RerankSettings, stack: AsyncExitStack
) -> Reranker:
    if not isinstance(provider, HttpProvider):
        return await stack.enter_async_context(provider.open_reranker())
    seconds = settings.timeout_ms / 1e3
    if settings.strict:
        return await connect_provider(provider, seconds, stack)
    try:
        return await connect_provider(provider, OPENING_SECONDS, stack)
    except ProviderError as error:
        log.warning("%s is connected later: %s", provider.model_identity.label, error)
        return LateReranker(provider, seconds, stack)

"""Profiles: pipelines with the defaults of a design document.

Each builder returns the arguments of a ``Pipeline``.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast
from urllib.parse import urlsplit

from pydantic import Field

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.query_types import BY_TYPE, CONV_03_05
from fusion_bench.config.yaml_files import format_yaml, read_yaml
from fusion_bench.engines.dialects.conv_07_05 import Conv0705
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, NoBlend
from fusion_bench.models.endpoints import RetryRules
from fusion_bench.models.rerank_config import BreakerRules, Deadline, RerankSettings
from fusion_bench.models.rerankers import HttpProvider, Provider, providers
from fusion_bench.serving.live.rerankers import RerankerLike

log = logging.getLogger("fusion_bench.serving.live")

#: The three strategies, which are the sources and their roles.
STRATEGIES = ("keyword", "semantic", "graph")
#: The name of the one rerank list.
CONV_RERANKER = "reranker"
#: Calls are as patient as the document's, which sets no limit, and a failure keeps the fused order.
CONV_SETTINGS = RerankSettings(
    timeout_ms=60_000.0, strict=False, retry=RetryRules(attempts=1, failure_kinds=())
)


def conv_07_05(
    reranker: RerankerLike | None = None,
    *,
    fusion: Literal["RRFFusion", "WeightedScoreFusion"] = "RRFFusion",
    k: int = 60,
    weights: Mapping[str, float] | None = None,
    always_rerank: bool = False,
    limit: int | None = None,
    **options: Any,  # noqa: ANN401 - of the pipeline
) -> dict[str, Any]:
    """The arguments of a pipeline of CONV-07-05.

    Args:
        reranker: Who scores; None = no reranker.
        fusion: Its name in the document.
        k: Of ``RRFFusion``.
        weights: By strategy; None = those of CONV-03-05 for the query's type.
        always_rerank: False = as many candidates as are wanted, or fewer, are not reranked.
        limit: Documents to return; the document's default is 20. ``search(limit=…)`` replaces it.
        options: Of ``Pipeline``, such as ``retrievers``.
    """
    method: dict[str, Any] = {"method": fusion}
    if fusion == "RRFFusion":
        method["k"] = k
    method["weights"] = {BY_TYPE.key: CONV_03_05} if weights is None else dict(weights)
    top_k = Conv0705.defaults["top_k"] if limit is None else limit
    system: dict[str, Any] = {
        "name": Conv0705.name,
        "dialect": Conv0705.name,
        "runs": list(STRATEGIES),
        "fusion": method,
        "top_k": top_k,
    }
    if reranker is not None:
        blend = {"reranker": CONV_RERANKER, "always_rerank": always_rerank, "skip_limit": top_k}
        options = {"rerankers": {CONV_RERANKER: reranker}, **options}
        system["blend"] = blend
    return {
        "system": system,
        "roles": {name: (name,) for name in STRATEGIES},
        "ties": "first_seen",
        "settings": CONV_SETTINGS,
        **options,
    }


#: The one list, and the one rerank list.
HYBRID, NABLARCH_RERANKER = "hybrid", "reranker"
#: Where the settings stand in an ``application.yml``.
PREFIX = ("nablarch", "rag", "rerank")
#: A key of the environment, as ``application.yml`` writes it.
VARIABLE = re.compile(r"\$\{(\w+)\}")
#: Method, limits and prices as the document has them (sections 2 and B): documents of a request,
#: tokens of a document, US dollars for 1,000 searches. Its endpoint of Cohere is of version 1.
PROVIDERS: Mapping[str, Mapping[str, Any]] = {
    "jina": {
        "method": "jina",
        "batch": 1000,
        "max_tokens": 8192,
        "price": {"per_1000_searches": 0.02},
    },
    "cohere": {
        "method": "cohere_v1",
        "batch": 1000,
        "max_tokens": 4096,
        "price": {"per_1000_searches": 1.0},
    },
}
#: Milliseconds of the document's whole pipeline, and of the search before the reranking.
TOTAL_MS = 300.0


class ScoreCombination(StrictModel):
    """``score-combination``: β·rerank + (1 − β)·hybrid."""

    beta: Annotated[float, Field(ge=0, le=1)] = 1.0


class ProviderEntry(StrictModel):
    """``jina`` and ``cohere``."""

    api_key: str | None = None
    model: str | None = None
    endpoint: str | None = None


class BreakerEntry(StrictModel):
    """``circuit-breaker``."""

    failure_threshold: Annotated[int, Field(ge=1)] = 5
    wait_duration_seconds: Annotated[float, Field(gt=0)] = 30.0
    half_open_max_calls: Annotated[int, Field(ge=1)] = 3


class NablarchRerank(StrictModel):
    """``nablarch.rag.rerank`` of an ``application.yml``, with ``-`` written as ``_``.

    Attributes:
        enabled: False = keep the order of the hybrid list.
        max_candidates: Documents that are scored.
        default_top_k: Documents that are returned.
        min_score: Documents whose rerank score is below this are dropped; None = none.
        timeout_ms: Milliseconds of a call, and of the whole reranking.
        score_combination: How both scores are combined.
        primary_provider: Who is asked first.
        fallback_provider: Who is asked when the first one cannot be reached; None = nobody.
        jina: Key, model and endpoint.
        cohere: The same.
        circuit_breaker: When calls stop.
    """

    where: ClassVar[str] = ".".join(PREFIX)

    enabled: bool = True
    max_candidates: Annotated[int, Field(ge=1)] = 50
    default_top_k: Annotated[int, Field(ge=1)] = 10
    min_score: float | None = 0.1
    timeout_ms: Annotated[float, Field(gt=0)] = 100.0
    score_combination: ScoreCombination = ScoreCombination()
    primary_provider: Literal["jina", "cohere"] = "jina"
    fallback_provider: Literal["jina", "cohere"] | None = "cohere"
    jina: ProviderEntry = ProviderEntry()
    cohere: ProviderEntry = ProviderEntry()
    circuit_breaker: BreakerEntry = BreakerEntry()

    def list_providers(self) -> list[Provider]:
        """The providers that are configured, in the order they are asked.

        One whose key is not set is left out, if the other one has its key.

        Raises:
            ConfigError: A key is not a variable of the environment, or an endpoint is of another
                API.
        """
        names = filter(None, (self.primary_provider, self.fallback_provider))
        every: dict[str, HttpProvider] = {}
        for name in dict.fromkeys(names):
            entry: ProviderEntry = getattr(self, name)
            keys: dict[str, Any] = dict(PROVIDERS[name])
            where = f"{self.where}.{name}"
            if entry.api_key is not None:
                variable = VARIABLE.fullmatch(entry.api_key)
                if variable is None:
                    raise ConfigError(
                        f"{where}.api-key: keys come from the environment only: write ${{VARIABLE}}"
                    )
                keys["key"] = variable[1]
            if entry.model is not None:
                keys["model"] = entry.model
            if entry.endpoint is not None:
                model = providers.find_model(keys)
                path = model.path if issubclass(model, HttpProvider) else ""
                if not urlsplit(entry.endpoint).path.endswith(path):
                    raise ConfigError(
                        f"{where}.endpoint {entry.endpoint!r}: a URL that ends in {path}"
                    )
                keys["base_url"] = entry.endpoint.removesuffix(path)
            every[name] = cast("HttpProvider", providers.build(keys))
        chosen = [each for each in every.values() if not each.key or os.environ.get(each.key)]
        for name, each in every.items():
            if chosen and each not in chosen:
                log.warning("%s.%s is left out: %s is not set", self.where, name, each.key)
        return [*(chosen or every.values())]

    @property
    def settings(self) -> RerankSettings:
        """Timeouts, retries and breaker."""
        breaker = self.circuit_breaker
        return RerankSettings(
            timeout_ms=self.timeout_ms,
            deadline=Deadline(rerank_ms=self.timeout_ms, total_ms=max(TOTAL_MS, self.timeout_ms)),
            strict=False,
            retry=RetryRules(wait_initial=0.01, wait_max=0.1, wait_jitter=0.01),
            breaker=BreakerRules(
                failures=breaker.failure_threshold,
                open_seconds=breaker.wait_duration_seconds,
                half_open_calls=breaker.half_open_max_calls,
            ),
        )


def nablarch(
    config: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    **options: Any,  # noqa: ANN401 - of the pipeline
) -> dict[str, Any]:
    """The arguments of a pipeline of nablarch's reranking design.

    The one list is ``hybrid``: documents with the scores of the hybrid search.

    Args:
        config: An ``application.yml``, its content, or what stands in it below
            ``nablarch.rag.rerank``; None = the document's defaults.
        options: Of ``Pipeline``; ``rerankers={"reranker": …}`` replaces the providers.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    read = _read_rerank_section(config)
    options = {"settings": read.settings, "enabled": read.enabled, **options}
    if read.enabled:
        options.setdefault("rerankers", {NABLARCH_RERANKER: read.list_providers()})
    blend = {
        "method": "linear",
        "beta": read.score_combination.beta,
        "reranker": NABLARCH_RERANKER,
        "depth": read.max_candidates,
        "min_score": read.min_score,
        "tail": "drop",
    }
    system = {
        "name": "nablarch",
        "runs": [HYBRID],
        "fusion": {"method": "weighted_score", "normalize": "none"},  # of one list: its scores
        "blend": blend,
        "top_k": read.default_top_k,
    }
    return {"system": system, "ties": "first_seen", **options}


def write_rerank_section(
    system: System, config: Mapping[str, Any] | str | os.PathLike[str] | None = None
) -> str:
    """The text of an ``application.yml`` whose reranking is that of a system.

    Depth, ``top_k``, ``min_score`` and ``beta`` are the system's, everything else is as it was.

    Args:
        system: One whose blend is ``linear`` with its tail dropped, or that has none.
        config: As for :func:`nablarch`; None = the document's defaults.

    Raises:
        ConfigError: The file has no words for the system.
    """
    read, blend = _read_rerank_section(config), system.blend
    changes: dict[str, Any] = {"enabled": not isinstance(blend, NoBlend)}
    if isinstance(blend, Linear):
        own = {name: getattr(blend, name) for name in ("reranker", "beta", "depth", "min_score")}
        written = Linear.model_validate({**own, "tail": "drop"})
        lost = [name for name, value in written if getattr(blend, name) != value]
        if lost:
            raise ConfigError(
                f"system {system.name!r}: blend.{lost[0]}: {getattr(blend, lost[0])!r} has no key "
                f"in an application.yml, which means {getattr(written, lost[0])!r}"
            )
        changes |= {"max_candidates": blend.depth, "min_score": blend.min_score}
        changes["score_combination"] = ScoreCombination(beta=blend.beta)
    elif not isinstance(blend, NoBlend):
        raise ConfigError(
            f"system {system.name!r}: blend: an application.yml means 'linear' or 'none', given "
            f"{blend.method!r}"
        )
    if system.top_k is not None:
        changes["default_top_k"] = system.top_k
    data: Any = _hyphenate(read.model_copy(update=changes).model_dump())
    for key in reversed(PREFIX):
        data = {key: data}
    return format_yaml(data)


def _hyphenate(data: Any) -> Any:  # noqa: ANN401 - as YAML has it
    """Write ``-`` for ``_`` in all keys of a mapping."""
    if not isinstance(data, Mapping):
        return data
    return {key.replace("_", "-"): _hyphenate(value) for key, value in data.items()}


def _read_rerank_section(
    config: Mapping[str, Any] | str | os.PathLike[str] | None,
) -> NablarchRerank:
    """The settings below ``nablarch.rag.rerank``; argument as for :func:`nablarch`.

    Raises:
        ConfigError: A key or value breaks a rule.
    """
    where = NablarchRerank.where
    if isinstance(config, str | os.PathLike):
        source = read_yaml(Path(config))
        config, where = source.data, f"{source.path}: {where}"
    data: Any = config or {}
    for key in PREFIX:
        if isinstance(data, Mapping) and key in data:
            data = data[key]
    return parse_model(NablarchRerank, _underscore(data), where)


def _underscore(data: Any) -> Any:  # noqa: ANN401 - as YAML says it
    """Write ``_`` for ``-`` in all keys of a mapping."""
    if not isinstance(data, Mapping):
        return data
    return {str(key).replace("-", "_"): _underscore(value) for key, value in data.items()}


#: Name → what builds the arguments of a ``Pipeline`` from the profile's options.
PROFILES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "conv-07-05": conv_07_05,
    "nablarch": nablarch,
}

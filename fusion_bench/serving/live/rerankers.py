"""The rerankers of a pipeline: chains of providers, the scores that a system needs of them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError, DataError, ProviderError
from fusion_bench.experiment.system import System
from fusion_bench.io.provenance import FUSED_ORDER
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.models.answer_stores import RecentScores
from fusion_bench.models.provider_session import (
    UNLIMITED,
    LateReranker,
    ProviderChain,
    ProviderSession,
    RerankAnswer,
    connect_provider,
)
from fusion_bench.models.rerank_config import Deadline, RerankConfig, RerankSettings
from fusion_bench.models.reranker_protocol import Reranker
from fusion_bench.models.rerankers import HttpProvider, Provider
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.ranking.system_ranking import fused_list, name_system_in_errors
from fusion_bench.serving.live.query_lists import (
    ListRules,
    QueryHit,
    add_rerank_list,
    chunk_ids,
)

log = logging.getLogger("fusion_bench.serving.live")

#: Seconds that a server may take to be connected before the first query.
OPENING_SECONDS = 5.0
#: A provider's method or its keys, an object that scores, several of these in the order they are
#: asked, or a YAML file with ``providers`` and a ``chain``.
RerankerLike: TypeAlias = (
    str | os.PathLike[str] | Mapping[str, Any] | Provider | Reranker | RerankConfig | Sequence[Any]
)


#: Providers in the order they are asked, and how they are asked.
ChainConfig: TypeAlias = tuple[tuple[Provider | Reranker, ...], RerankSettings]


async def open_chains(
    configs: Mapping[str, ChainConfig],
    stack: AsyncExitStack,
    store: RecentScores,
    spaces: Mapping[str, ScoreSpace],
) -> dict[str, ProviderChain]:
    """Connect the providers of all chains; see :func:`_open_chain`.

    Args:
        configs: By name of the rerank list.
        stack: Releases what is opened.
        store: Keeps scores and events.
        spaces: Score space of each stored list; another one of its chain is logged.
    """
    chains = {}
    for name, config in configs.items():
        chains[name] = chain = await _open_chain(name, config, stack, store)
        if chain.score_space != spaces.get(name, chain.score_space):
            log.warning(
                "reranker %r: its scores are %r, and those of the stored list %r: a blend that was "
                "tuned on these may weigh them otherwise",
                name,
                chain.score_space,
                spaces[name],
            )
    return chains


async def _open_chain(
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
    providers_of_chain, settings = config
    sessions = []
    for provider in providers_of_chain:
        limits = provider if isinstance(provider, Provider) else UNLIMITED
        if not isinstance(provider, Provider):
            reranker = provider
        elif not isinstance(provider, HttpProvider):
            reranker = await stack.enter_async_context(provider.open_reranker())
        else:
            seconds = settings.timeout_ms / 1e3
            wait = seconds if settings.strict else OPENING_SECONDS
            try:
                reranker = await connect_provider(provider, wait, stack)
            except ProviderError as error:
                if settings.strict:
                    raise
                log.warning("%s is connected later: %s", provider.model_identity.label, error)
                reranker = LateReranker(provider, seconds, stack)
        session = ProviderSession(reranker, settings, provider=limits, store=store, run=name)
        sessions.append(session)
    return ProviderChain(sessions, settings)


@dataclass(frozen=True)
class ScoringTools:
    """Stores, limits and settings that the scoring of all queries shares.

    Attributes:
        chains: By name of the rerank list.
        deadlines: By name of the rerank list; None = none.
        spaces: Score space of each rerank list.
        rules: How lists are read.
        store: Keeps the events.
        keeps_unread: Whether an answer of which no score could be read counts: 0.5 each.
    """

    chains: Mapping[str, ProviderChain]
    deadlines: Mapping[str, Deadline | None]
    spaces: Mapping[str, ScoreSpace]
    rules: ListRules
    store: RecentScores
    keeps_unread: bool = False


@dataclass
class QueryScoring:
    """The scoring of one query.

    Attributes:
        tools: What all queries share.
        query: The query.
        lists: Its lists by name, rerank lists that were handed over included.
        started: When the query began, on the monotonic clock.
        answers: What the chains answered, in order.
        is_skipped: Whether a blend had too few candidates.
        took_ms: Milliseconds of all chains.
        unread: Documents whose score could not be read.
    """

    tools: ScoringTools
    query: Query
    lists: Mapping[str, Sequence[QueryHit]]
    started: float
    answers: list[RerankAnswer] = field(default_factory=list, init=False)
    is_skipped: bool = field(default=False, init=False)
    took_ms: float = field(default=0.0, init=False)
    unread: set[str] = field(default_factory=set, init=False)
    _scores: dict[str, dict[str, float]] = field(default_factory=dict, init=False)
    _given: list[str] = field(default_factory=list, init=False)

    def add_given_scores(self, runs: AlignedRuns) -> AlignedRuns:
        """The runs with the rerank lists that were handed over."""
        for name, hits in self.lists.items():
            if name not in runs.sources:
                runs = add_rerank_list(runs, name, hits, self.tools.rules)
        return runs

    async def score_system(self, system: System, runs: AlignedRuns) -> tuple[System, AlignedRuns]:
        """The plain system of this query, and the runs with the scores that it needs.

        Where no provider scores, the system keeps the fused order.

        Args:
            system: Any system whose trained parts are fitted, and which collapses its sources only.
            runs: Of this query alone.

        Raises:
            AlignmentError: A candidate has no score in a list that was handed over.
            ConfigError: A rerank list is needed that nobody gives.
            DataError: A candidate has no text.
            ProviderError: A refusal, when settings are strict.
        """
        stages = {}
        for name, stage in (system.stages or {}).items():
            stages[name], runs = await self.score_system(stage, runs)
        if stages:
            system = system.model_copy(update={"stages": stages})
        [(_, plain, part)] = plain_systems(system, runs)
        plain = plain.model_copy(update={"collapse": system.collapse})
        blend = plain.blend
        if not isinstance(blend, RerankBlend):
            return plain, runs
        with name_system_in_errors(plain):
            view = plain.active_runs(part)
            fused = fused_list(view, plain.fusion)
            rows = np.flatnonzero(blend.select_candidates(view, fused))
        ids = chunk_ids(view)
        candidates = [ids[row] for row in rows[np.argsort(fused.positions[rows])]]
        if not candidates:
            self.is_skipped = True
        if blend.reranker in self.lists:
            # The list that was handed over is the one that scored.
            name = blend.reranker
            scored = {hit.id for hit in self.lists[name]}
            missing = [document for document in candidates if document not in scored]
            if missing and blend.missing == "error":
                raise AlignmentError(
                    f"list {name!r}: no score for document {missing[0]!r}, a candidate of query "
                    f"{self.query.text!r:.80} ({len(missing)} of {len(candidates)} candidates have "
                    "none): hand over a score for each, or set the blend's 'missing' to zero or "
                    "below"
                )
            if len(missing) < len(candidates):
                self._given.append(name)
            return plain, runs
        if candidates and not await self._score_candidates(blend, candidates):
            return plain.model_copy(update={"blend": NoBlend()}), runs
        scores = self._scores.get(blend.reranker, {})
        hits = [QueryHit(document, score) for document, score in scores.items()]
        return plain, add_rerank_list(runs, blend.reranker, hits, self.tools.rules)

    async def _score_candidates(self, blend: RerankBlend, candidates: Sequence[str]) -> bool:
        """Ask for the scores of candidates, best first; whether a provider gave them."""
        name = blend.reranker
        if name not in self.tools.chains:
            raise ConfigError(
                f"rerank list {name!r}: nobody scores it: give rerankers={{{name!r}: …}}, or hand "
                "its scores over beside the other lists"
            )
        known = self._scores.setdefault(name, {})
        texts = self._find_texts(candidates, blend)
        space = self.tools.spaces[name]
        if space == "order":  # two calls have no common scale: ask for all again
            texts = {**self._find_texts(list(known), blend), **texts}
        else:
            texts = {document: texts[document] for document in texts if document not in known}
        if not texts:
            return True
        answer = await self._ask_chain(name, list(texts.values()))
        known.update(zip(texts, answer.scores_in(space), strict=False))
        documents = list(texts)
        self.unread.update(documents[position] for position in answer.unread)
        return answer.scores is not None

    def _find_texts(self, documents: Sequence[str], blend: RerankBlend) -> dict[str, str]:
        """Document → its text, of the first list that has one."""
        texts: dict[str, str] = {}
        for hits in self.lists.values():
            for hit in hits:
                if hit.text is not None:
                    texts.setdefault(hit.id, hit.text)
        for document in documents:
            if document not in texts and blend.missing == "error":
                raise DataError(
                    f"document {document!r}, a candidate of query {self.query.text!r:.80}, has no "
                    "text to rerank by: hand over (id, score, text), or set the blend's 'missing' "
                    "to zero or below"
                )
        return {document: texts[document] for document in documents if document in texts}

    async def _ask_chain(self, name: str, texts: Sequence[str]) -> RerankAnswer:
        chain, deadline = self.tools.chains[name], self.tools.deadlines[name]
        began = time.monotonic()
        left = None
        if deadline is not None:
            left = deadline.remaining_ms(1e3 * (began - self.started))
        if left is not None and left <= 0:
            log.warning("no time left to rerank after %.0f ms", 1e3 * (began - self.started))
            answer = RerankAnswer(failures=((chain.first_identity.label, "timeout"),))
        else:
            seconds = None if left is None else left / 1e3
            answer = await chain.score_documents(self.query.text or "", texts, seconds)
            if len(answer.unread) == len(texts) and not self.tools.keeps_unread:
                log.error("%s: the fused order stays", answer.unread_reason)
                failures = (*answer.failures, (answer.provider_label, "malformed"))
                answer = RerankAnswer(failures=failures, documents_asked=answer.documents_asked)
        took = 1e3 * (time.monotonic() - began)
        self.took_ms += took
        self.answers.append(answer)
        event = {
            "kind": "query",
            "provider": answer.provider_label,
            "candidates": len(texts),
            "asked": answer.documents_asked,
            "latency_ms": took,
            "degraded": answer.degraded_reason,
        }
        self.tools.store.record_event(name, event)
        return answer

    @property
    def provider(self) -> str:
        """The sources of the scores: ``provider/model`` or a list's name; or ``fused order``."""
        asked = (a.provider_label for a in self.answers if a.scores is not None)
        labels = dict.fromkeys((*self._given, *asked))
        return ", ".join(labels) or FUSED_ORDER

    @property
    def degraded(self) -> str:
        """Why scores are not those of the first provider, all of them; empty if they are."""
        reasons = (why for a in self.answers for why in (a.degraded_reason, a.unread_reason))
        return "; ".join(dict.fromkeys(filter(None, reasons)))

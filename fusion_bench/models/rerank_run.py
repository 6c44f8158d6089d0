"""``fusion-bench rerank`` as functions: score a list, write it, estimate its price."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Document
from fusion_bench.errors import ConfigError, DataError, ProviderError, UnknownNameError
from fusion_bench.experiment.experiment import apply_switch, read_experiment
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import documents_of, read_spec
from fusion_bench.io.held_out import read_everything, refuse_learning
from fusion_bench.io.outputs import check_output, is_earlier_output
from fusion_bench.io.provenance import ListMeta, write_with_meta
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import fusions
from fusion_bench.models import call_limits, provider_session, rerank_config
from fusion_bench.models.answer_stores import ScoreStore, lock_models
from fusion_bench.models.endpoints import run_workers
from fusion_bench.models.options import RerankOptions
from fusion_bench.models.reranker_protocol import Reranker, Usage
from fusion_bench.models.rerankers import HttpProvider, Provider
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.util.files import require_folder, resolve_path
from fusion_bench.util.formatting import Columns, TableView, pluralize

log = logging.getLogger("fusion_bench.rerank")

#: Called with queries done, queries in all, and the cost so far.
OnProgress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class QueryCandidates:
    """One query with its candidates.

    Attributes:
        id: The query's id.
        text: Its text.
        candidates: Document → its text, in fused order; over several repeats by the best rank in
            any of them.
    """

    id: str
    text: str
    candidates: Mapping[str, str]


@dataclass(frozen=True)
class ScoringRequest:
    """Everything that a run scores.

    Attributes:
        dataset: Name of the dataset.
        fingerprint: SHA-256 of the dataset.
        system: The system whose fused list gives the candidates.
        depth: Most candidates per query and repeat.
        split: Only queries of this split; None = all judged queries.
        queries: The queries that have candidates.
        repeats: Repeats of the system's lists; a query has the candidates of all of them.
    """

    dataset: str
    fingerprint: str
    system: System
    depth: int
    split: str | None
    queries: tuple[QueryCandidates, ...]
    repeats: int = 1


def find_system(name: str, dataset: Path, experiment: Path | None) -> System:
    """The system of that name.

    Args:
        name: Of a system of the experiment, of a run, or of a fusion method, which then fuses all
            runs.
        dataset: The ``dataset.yaml``.
        experiment: An experiment file; None = only runs and fusion methods.

    Raises:
        UnknownNameError: Neither a system, a run nor a fusion method has that name.
    """
    spec, _ = read_spec(dataset)
    systems = {} if experiment is None else read_experiment(experiment)[0].systems
    if name in systems:
        return systems[name]
    if name in spec.runs:
        return System(name=name, runs=(name,))
    if name in fusions.load_all() or fusions.find_alias(name) is not None:
        return apply_switch(System(name=name, runs=tuple(spec.runs), fusion=fusions.build(name)))
    remedy = "" if experiment else "an experiment's systems need its file: rerank EXPERIMENT"
    known = {*systems, *spec.runs, *fusions.load_all()}
    raise UnknownNameError("system", name, known, remedy=remedy)


def prepare_request(
    path: Path, system: System, *, depth: int, split: str | None = None
) -> ScoringRequest:
    """Read a dataset, fuse, and take the top of each query's list.

    Args:
        path: The dataset's ``dataset.yaml``.
        system: Its fusion gives the order; its blend is ignored.
        depth: Most candidates per query and repeat.
        split: Only queries of this split; None = all judged queries.

    Raises:
        ConfigError: The system does not fit the dataset, or learns from it while a campaign holds
            out queries; or there is no such split.
        DataError: A query or a document has no text.
    """
    roles = read_spec(path)[0].run_roles
    lists = () if system.blend.reranker_name is None else (system.blend.reranker_name,)
    for location, problem in system.find_misfits(roles, lists):
        place = ".".join(str(part) for part in location)
        raise ConfigError(f"{path}: system {system.name!r}: {place}: {problem}")
    fusing = system.model_copy(update={"blend": NoBlend(), "top_k": depth})
    if needs_fitting(fusing):
        refuse_learning(path, system.name)
    with read_everything():
        dataset = load_dataset(
            path,
            runs=system.base_runs,
            rerankers=fusing.reranker_names,
            every_query=None,
            merged=merge_rules([system]),
        )
    if split is not None and split not in dataset.splits:
        where = f"--split: {dataset.name}"
        raise UnknownNameError("split", split, dataset.splits, where=where)
    texts = documents_of(path)
    repeats: dict[str, list[QueryCandidates]] = {}
    for runs in dataset.align_repeats([*dataset.runs]).common_repeats().repeats:
        for query in _rank_candidates(dataset, fusing, runs, split, texts):
            repeats.setdefault(query.id, []).append(query)
    queries = []  # with the candidates of every repeat: a blend has each score that one asks for
    for several in repeats.values():
        # The union of the lists, by the best rank in any; of equal ranks the earlier list's.
        pairs = itertools.chain.from_iterable(
            itertools.zip_longest(*(query.candidates.items() for query in several))
        )
        candidates = dict(pair for pair in pairs if pair is not None)
        queries.append(replace(several[0], candidates=candidates))
    return ScoringRequest(
        dataset.name,
        dataset.fingerprint,
        system,
        depth,
        split,
        tuple(queries),
        repeats=dataset.count_repeats(),
    )


def _rank_candidates(
    dataset: Dataset,
    system: System,
    runs: AlignedRuns,
    split: str | None,
    texts: Mapping[str, Document],
) -> Iterator[QueryCandidates]:
    """The candidates of one repeat."""
    for _, ranking in rank_queries(system, runs):
        ranked = ranking.runs
        codes = ranked.documents if ranked.chunks is None else ranked.chunks
        for q, query in enumerate(ranked.queries):
            known = dataset.queries.get(query)
            if split is not None and (known is None or known.split != split):
                continue
            if known is None or not known.text:
                raise DataError(
                    f"{dataset.name}: query {query!r} has no 'text': give it one in the queries "
                    "file ('queries' of dataset.yaml)"
                )
            rows = np.arange(ranked.offsets[q], ranked.offsets[q + 1])
            rows = rows[ranking.positions[rows] > 0]
            candidates: dict[str, str] = {}
            for code in codes[rows[np.argsort(ranking.positions[rows])]]:
                name = ranked.vocabulary[code]
                if name not in texts:
                    raise DataError(
                        f"{dataset.name}: document {name!r}, a candidate of query {query!r}, has "
                        "no text in 'documents' of dataset.yaml"
                    )
                candidates[name] = texts[name].text
            if candidates:
                yield QueryCandidates(query, known.text, candidates)


def _run_key(work: ScoringRequest, provider: Provider) -> str:
    facts = (work.dataset, work.fingerprint, work.system.name, work.depth, work.split)
    return call_limits.run_key(provider.model_identity, *facts)


async def _score_queries(
    work: ScoringRequest,
    providers: Sequence[Provider],
    settings: rerank_config.RerankSettings,
    store: ScoreStore,
    *,
    max_cost: float | None,
    on_progress: OnProgress,
) -> tuple[provider_session.ProviderChain, dict[str, provider_session.RerankAnswer]]:
    """Score everything that is not in the store yet.

    Args:
        work: What is scored.
        providers: In the order they are asked.
        settings: Timeouts, retries, breaker.
        store: Stored scores.
        max_cost: Stop before the cost, earlier runs included, exceeds this.
        on_progress: Called after each query.

    Returns:
        The chain with the models that it resolved, and the answer for each query.

    Raises:
        CostLimitError: The limit was reached; scores are stored.
        ProviderError: A refusal, when settings are strict.
    """
    run = _run_key(work, providers[0])
    budget = call_limits.Budget(max_cost, call_limits.sum_booked_costs(store.read_events(run)))
    deadline = None if settings.deadline is None else settings.deadline.remaining_ms(0.0) / 1e3
    answers: dict[str, provider_session.RerankAnswer] = {}
    async with AsyncExitStack() as stack:
        rerankers = await _open_rerankers(providers, settings, deadline, stack)
        sessions = []
        for provider, reranker in zip(providers, rerankers, strict=True):
            configured = provider.model_identity
            if reranker.identity.model != provider.model and configured != reranker.identity:
                store.save_model(configured, reranker.identity.model)
            session = provider_session.ProviderSession(
                reranker, settings, provider=provider, store=store, run=run, budget=budget
            )
            if isinstance(reranker, provider_session.LateReranker):
                session.breaker.open_now()
            sessions.append(session)
        chain = provider_session.ProviderChain(sessions, settings)
        on_progress(0, len(work.queries), budget.spent)

        async def score_query(query: QueryCandidates) -> None:
            started = time.monotonic()
            texts = [*query.candidates.values()]
            answer = await chain.score_documents(query.text, texts, deadline)
            if answer.documents_asked or answer.failures:
                event = {
                    "kind": "query",
                    "query": query.id,
                    "provider": answer.provider_label,
                    "candidates": len(texts),
                    "asked": answer.documents_asked,
                    "latency_ms": 1e3 * (time.monotonic() - started),
                    "degraded": answer.degraded_reason,
                    "unread": [position + 1 for position in answer.unread],
                }
                store.record_event(run, event)
            answers[query.id] = answer
            on_progress(len(answers), len(work.queries), budget.spent)

        # Enough queries to keep the first provider's slots busy.
        await run_workers(work.queries, score_query, 2 * providers[0].concurrency)
    return chain, answers


async def _open_rerankers(
    providers: Sequence[Provider],
    settings: rerank_config.RerankSettings,
    deadline: float | None,
    stack: AsyncExitStack,
) -> list[Reranker]:
    """Connect all providers; one that cannot be connected is an error if no other one can be.

    Args:
        providers: In the order they are asked.
        settings: Their ``timeout_ms`` is the limit of each.
        deadline: Seconds, another limit of each.
        stack: Releases the connections.
    """
    limit = settings.timeout_ms / 1e3
    rerankers: list[Reranker] = []
    errors: list[ProviderError] = []
    for provider in providers:
        is_remote = isinstance(provider, HttpProvider)  # to load a model takes its time
        seconds = min(limit, deadline or limit) if is_remote else None
        try:
            rerankers.append(await provider_session.connect_provider(provider, seconds, stack))
        except ProviderError as error:
            if error.kind == "refused" and settings.strict:
                raise
            errors.append(error)
            rerankers.append(provider_session.LateReranker(provider, limit, stack))
    if len(errors) == len(providers):
        raise errors[0]
    for failure in errors:
        log.warning("not connected, so another provider is asked: %s", failure)
    return rerankers


#: A list of which a greater share of the scores could not be read is degraded.
MOST_UNREAD = 0.05


@dataclass(frozen=True, repr=False)
class WrittenList(TableView):
    """A list on disk.

    Attributes:
        path: The list.
        meta: Its provenance, which stands beside it.
        dataset_entry: The lines that make it part of the ``dataset.yaml``.
        scores: How many it has.
    """

    path: Path
    meta: ListMeta
    dataset_entry: str
    scores: int = 0

    def _summary(self) -> str:
        scored = self.meta.providers.items()
        parts = [f"{pluralize(len(ids), 'query')} by {name}" for name, ids in scored]
        unscored, unread = len(self.meta.unscored), self.meta.unread_count
        parts += [f"{unscored} not by {self.meta.asked}"] if unscored else []
        parts += [f"{pluralize(unread, 'score')} not readable"] if unread else []
        return f"WrittenList({str(self.path)!r}, {', '.join(parts)})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a provider, with how many queries it scored."""
        rows = list(self.meta.providers.items())[:limit]
        return {"provider": [n for n, _ in rows], "queries": [len(ids) for _, ids in rows]}


def _build_list(
    request: ScoringRequest,
    chain: provider_session.ProviderChain,
    answers: Mapping[str, provider_session.RerankAnswer],
    events: Iterable[dict[str, object]],
    settings: dict[str, object],
) -> tuple[bytes, ListMeta]:
    """The list as JSON Lines, and its provenance.

    Args:
        request: What was to be scored.
        chain: Who was asked.
        answers: By query, one for each query of the request.
        events: Of the ledger.
        settings: Of the run, as the provenance states them.

    Raises:
        DataError: No query was scored.
    """
    asked, space = chain.first_identity.label, chain.score_space
    rows: list[str] = []
    providers: dict[str, tuple[str, ...]] = {}
    degraded: dict[str, str] = {}
    unread = {
        query.id: tuple(position + 1 for position in answers[query.id].unread)
        for query in request.queries
        if answers[query.id].unread
    }
    for query in request.queries:
        answer = answers[query.id]
        label = answer.provider_label
        providers[label] = (*providers.get(label, ()), query.id)
        if label != asked or answer.degraded_reason:
            degraded[query.id] = answer.degraded_reason or f"{label}, not {asked}"
        for document, score in zip(query.candidates, answer.scores_in(space), strict=False):
            row = {"query": query.id, "document": document, "score": score}
            rows.append(f"{json.dumps(row, ensure_ascii=False)}\n")
    if not rows:
        why = next(iter(degraded.values()), "no query has candidates")
        raise DataError(f"{request.dataset}: no query was scored: {why}")
    if sum(map(len, unread.values())) > MOST_UNREAD * len(rows):
        scores = {query: pluralize(len(answers[query].scores or ()), "score") for query in unread}
        degraded = {
            query: f"{len(positions)} of {scores[query]} could not be read"
            for query, positions in unread.items()
        } | degraded
    data = "".join(rows).encode()
    return data, ListMeta(
        list_sha256=hashlib.sha256(data).hexdigest(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=request.dataset,
        system=request.system.name,
        depth=request.depth,
        score_space=space,
        asked=asked,
        providers=providers,
        degraded=degraded,
        unread=unread,
        settings=settings,
        # A query that has the candidates of several repeats costs more.
        ledger=call_limits.summarize_events(events)
        | ({"trials": request.repeats} if request.repeats > 1 else {}),
    )


def _check_run(
    dataset: Path, options: RerankOptions
) -> tuple[Path, ScoringRequest, list[Provider], rerank_config.RerankConfig]:
    """Check inputs and options: the file, what is scored by whom, and how; nobody is asked yet."""
    system = find_system(options.system, dataset, options.experiment)
    config = rerank_config.read_rerank_config(options.config)
    providers = rerank_config.select_providers(
        config, options.provider, options.fallbacks, options.overrides
    )
    name = safe_file_name(f"{system.name}-{providers[0].method}")
    path = options.out or dataset.parent / "rerank" / f"{name}.jsonl"
    if path.suffix != ".jsonl" or path.is_dir():
        raise ConfigError(
            f"--out {path}: a rerank list is a .jsonl file: name a file, not a folder"
        )
    require_folder(path.parent)
    check_output(path, is_owned=is_earlier_output(path))
    unpriced = [provider.model_identity.label for provider in providers if provider.price is None]
    if options.max_cost is not None and unpriced:
        raise ConfigError(
            f"--max-cost needs the price of {', '.join(unpriced)}: give it in --config, or with "
            "--set price.per_1000_searches=… or price.per_million_tokens=…"
        )
    request = prepare_request(dataset, system, depth=options.depth, split=options.split)
    return path, request, providers, config


def estimate_list(dataset: Path, options: RerankOptions) -> call_limits.CostEstimate:
    """What :func:`score_list` would ask for and cost; asks nobody.

    Raises:
        FusionBenchError: An input or an option breaks a rule.
    """
    _, request, providers, _ = _check_run(dataset, options)
    with closing(ScoreStore(options.store)) as store:
        provider = providers[0]
        configured = provider.model_identity
        identity = replace(configured, model=store.resolved_model(configured))
        cut = provider.truncation
        pairs, stored, calls, usage = 0, 0, 0, Usage()
        for question in request.queries:
            texts = [cut(text) for text in question.candidates.values()]
            known = store.read_scores(identity, question.text, texts)
            missing = [text for text, score in zip(texts, known, strict=True) if score is None]
            pairs += len(texts)
            stored += len(texts) - len(missing)
            distinct = list(dict.fromkeys(missing))
            for start in range(0, len(distinct), provider.batch):
                calls += 1
                batch = distinct[start : start + provider.batch]
                usage += provider.estimate_usage(question.text, batch)
        cost = None if provider.price is None else provider.price.cost_of(usage)
        return call_limits.CostEstimate(
            configured.label,
            len(request.queries),
            pairs,
            stored,
            calls,
            usage,
            cost,
            trials=request.repeats,
        )


def score_list(dataset: Path, options: RerankOptions, on_progress: OnProgress) -> WrittenList:
    """Score every candidate that the store does not know, and write the list.

    Waits for another run that asks the same model and keeps its scores in the same store.

    Args:
        dataset: The ``dataset.yaml``.
        options: What is reranked, and how.
        on_progress: Called with queries done, queries in all, and the price so far.

    Raises:
        FusionBenchError: An input or an option breaks a rule, no query could be scored, the price
            limit was reached, or the list cannot be written. Scores stay in the store.
    """
    path, request, providers, config = _check_run(dataset, options)
    identities = [provider.model_identity for provider in providers]
    with lock_models(options.store, identities), closing(ScoreStore(options.store)) as store:
        scoring = _score_queries(
            request,
            providers,
            config.resolved_settings(),
            store,
            max_cost=options.max_cost,
            on_progress=on_progress,
        )
        chain, answers = asyncio.run(scoring)
        events = store.read_events(_run_key(request, providers[0]))
    record: dict[str, object] = {
        "profile": config.profile,
        "split": request.split,
        "providers": [provider.model_dump(mode="json") for provider in providers],
        "identities": [asdict(session.identity) for session in chain.sessions],
        "settings": config.resolved_settings().model_dump(mode="json"),
    }
    data, meta = _build_list(request, chain, answers, events, record)
    write_with_meta(path, data, meta)
    whole, root = resolve_path(path), resolve_path(dataset.parent)
    place = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path.name
    entry = f"{path.stem}: {{path: {place}, score_space: {meta.score_space}}}"
    return WrittenList(path, meta, f"rerank:\n  {entry}", data.count(b"\n"))


def safe_file_name(name: str) -> str:
    """A name as a part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "list"

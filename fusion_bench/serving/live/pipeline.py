"""The live pipeline: the lists of one query → fused, reranked, blended results."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy.ma  # noqa: F401 - or the first median of a query would import it

from fusion_bench.config.query_types import BY_INTENT, BY_TYPE, CONV_03_05
from fusion_bench.data.aligned_runs import Ties
from fusion_bench.data.records import Condition, Query, ScoreSpace
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.experiment import find_one_dataset, read_experiment
from fusion_bench.experiment.settings import CragRule
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import DatasetSpec, find_folders, read_spec
from fusion_bench.models.answer_stores import RecentScores
from fusion_bench.models.call_limits import summarize_events
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.ranking.collapse import unfold_collapse
from fusion_bench.ranking.plain_systems import choose_class, fit_system, needs_fitting
from fusion_bench.ranking.query_signals import compute_signals, decide_answer
from fusion_bench.schema.search_records import SearchQuery
from fusion_bench.serving.live.configuration import (
    PipelineConfig,
    apply_limit,
    configure_pipeline,
    without_reranking,
)
from fusion_bench.serving.live.final_list import (
    LiveDocument,
    LiveResult,
    judge_documents,
    rank_documents,
)
from fusion_bench.serving.live.profiles import PROFILES
from fusion_bench.serving.live.query_lists import (
    LIVE_QUERY,
    ListRules,
    Source,
    align_lists,
    gather_lists,
)
from fusion_bench.serving.live.rerankers import (
    QueryScoring,
    RerankerLike,
    ScoringTools,
    open_chains,
)

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for any thread, one loop for all of them."""

    def __init__(self) -> None:
        self._loop, self._is_closed = asyncio.new_event_loop(), False
        self._thread = threading.Thread(
            target=self._run_loop, name="fusion_bench.serving.live", daemon=True
        )
        self._thread.start()

    def _run_loop(self) -> None:
        """Run the loop until it is closed: a task that exits ends neither it nor other tasks."""
        while not self._is_closed:
            with suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; waits for it, and cancels it at Ctrl-C."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # without effect on what has ended

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(self._loop.shutdown_default_executor())
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Pipeline:
    """Answers live queries as one system does, by the code that evaluates it.

    Drops duplicates, fuses, reranks within a deadline, blends, applies thresholds, cuts. Open it
    before the first query: ``async with pipeline`` for :meth:`search`, ``with pipeline`` for
    :meth:`search_sync`.

    Args:
        system: The system, or its keys as in YAML. What is trained in it must be fitted.
        roles: Roles of each source; needed where weights go by role.
        rerankers: Who scores each rerank list that the system reads: a provider's method or keys,
            a YAML file with a chain, an object that scores, or several of these in order.
        retrievers: Functions that return a source's list for the text of a query, sync or async.
        settings: Deadline, retries and breaker of rerankers that have none of their own, in place
            of those of the profile ``production``; and whether failures are errors (``strict``).
        score_spaces: What the scores of rerank lists mean that are handed over.
        ties: The tie rule.
        when: By source: field of a query → the values with which the source is on.
        crag: Thresholds of CRAG's verdict on a list, or their keys as in YAML; None = no verdict.
        enabled: False = keep the fused order, and ask no reranker.

    Raises:
        ConfigError: The system is not fitted, or does not fit its sources, or
            ``RAG_FUSION_V2_ENABLED`` is neither true nor false.

    >>> pipeline = Pipeline({"runs": ["bm25", "dense"], "top_k": 2})
    >>> with pipeline:
    ...     result = pipeline.search_sync(
    ...         "zebra", {"bm25": [("d2", 9.1), ("d1", 7.4)], "dense": {"d1": 0.8, "d3": 0.7}}
    ...     )
    >>> [document.id for document in result.documents]
    ['d1', 'd2']
    """

    def __init__(
        self,
        system: System | Mapping[str, Any],
        *,
        roles: Mapping[str, Collection[str]] | None = None,
        rerankers: Mapping[str, RerankerLike] | None = None,
        retrievers: Mapping[str, Source] | None = None,
        settings: RerankSettings | Mapping[str, Any] | None = None,
        score_spaces: Mapping[str, ScoreSpace] | None = None,
        ties: Ties = "trec",
        when: Mapping[str, Condition] | None = None,
        crag: CragRule | Mapping[str, Any] | None = None,
        enabled: bool = True,
    ) -> None:
        config = configure_pipeline(
            system,
            ListRules(_read_roles(roles), {}, ties, when or {}),
            rerankers=rerankers,
            retrievers=retrievers,
            settings=settings,
            score_spaces=score_spaces,
            crag=crag,
            enabled=enabled,
        )
        self._configure(config)

    @classmethod
    def from_config(cls, config: PipelineConfig) -> Self:
        """The pipeline of a configuration, which is checked already."""
        made = cls.__new__(cls)
        made._configure(config)
        return made

    def _configure(self, config: PipelineConfig) -> None:
        self._config = config
        self._store = RecentScores()
        self._tools: ScoringTools | None = None
        self._stack: AsyncExitStack | None = None
        self._thread: LoopThread | None = None

    @property
    def system(self) -> System:
        """The system that ranks."""
        return self._config.system

    @property
    def is_open(self) -> bool:
        """Whether it answers queries."""
        return self._tools is not None

    @classmethod
    def from_experiment(
        cls,
        path: str | os.PathLike[str],
        system: str | None = None,
        *,
        dataset: str | None = None,
        roles: Mapping[str, Collection[str]] | None = None,
        folders: Collection[str | os.PathLike[str]] | None = None,
        overrides: Sequence[str] = (),
        **options: Any,  # noqa: ANN401 - of the constructor
    ) -> Self:
        """The pipeline of a system in an experiment file.

        Roles, tie rule, score spaces and how lists are read are those of the file and of its
        dataset's ``dataset.yaml``. Trained parts are fitted to all of the dataset's judgments.

        Args:
            path: The experiment, such as the ``tuned.yaml`` that ``tune`` writes.
            system: The system's name; by default the gated one, or the only one.
            dataset: As the experiment names it; by default its only one.
            roles: Roles of each source, where the dataset is not at hand.
            folders: Where named datasets live.
            overrides: ``KEY=VALUE`` each: values that replace the file's.
            options: Of :class:`Pipeline`: ``rerankers``, ``retrievers``, ``settings``, …

        Raises:
            FusionBenchError: A file breaks a rule, or a name is unknown.
        """
        parameters = inspect.signature(configure_pipeline).parameters.values()
        known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
        for name in options:
            if name not in known:
                raise UnknownNameError("option", name, known, where="Pipeline.from_experiment")
        tuned, rules, spaces, crag = _load_tuned_system(
            Path(path),
            system,
            dataset=dataset,
            roles=None if roles is None else _read_roles(roles),
            folders=None if folders is None else [Path(folder) for folder in folders],
            overrides=overrides,
        )
        options["score_spaces"] = {**spaces, **(options.get("score_spaces") or {})}
        options.setdefault("crag", crag)
        return cls.from_config(configure_pipeline(tuned, rules, **options))

    @classmethod
    def profile(cls, name: str, /, **options: Any) -> Pipeline:  # noqa: ANN401 - of the profile
        """A pipeline with the defaults and the names of a design document.

        Args:
            name: ``conv-07-05`` or ``nablarch``.
            options: See :mod:`fusion_bench.serving.live.profiles`.

        Raises:
            UnknownNameError: There is no such profile.
        """
        if name not in PROFILES:
            raise UnknownNameError("profile", name, PROFILES)
        return cls(**PROFILES[name](**options))

    async def search(
        self,
        query: str | Query | SearchQuery,
        lists: Mapping[str, Source] | None = None,
        *,
        query_type: str | None = None,
        intent: str | None = None,
        confidence: float | None = None,
        limit: int | None = None,
        elapsed_ms: float = 0.0,
    ) -> LiveResult:
        """Answer one query; many may run at once.

        Args:
            query: Its text, a ``Query``, or a ``SearchQuery``: then its strategies, its limit and
                offset, and whether it is reranked apply too.
            lists: The list of each source that has no retriever, in any order: see
                :func:`~fusion_bench.serving.live.query_lists.read_hits`. Functions are retrievers
                of this query. Under the name of a rerank list: its scores, which then no provider
                gives.
            query_type: Its type.
            intent: Its intent.
            confidence: How sure the type is, 0 to 1.
            limit: Documents to return, in place of the system's ``top_k``. Where the blend says
                ``always_rerank: false``, at most so many candidates are not reranked.
            elapsed_ms: Milliseconds that the query has taken so far.

        Raises:
            ConfigError: The pipeline is not open, a list is missing, or an argument breaks a rule.
            DataError: A list breaks a rule, or a candidate has no text.
            ProviderError: A refusal, when settings are strict.
        """
        _check_elapsed(elapsed_ms)
        started = time.monotonic() - elapsed_ms / 1e3
        if self._tools is None:
            raise ConfigError("the pipeline is not open: search inside 'async with pipeline'")
        rules, system = self._config.rules, self.system
        if isinstance(query, SearchQuery):
            options = query.options
            off = options.inactive_strategies
            rules, fields = rules.without_strategies(off) if off else (rules, {})
            query_type, limit = (
                query_type or str(query.type),
                limit or options.offset + options.limit,
            )
            query = Query(LIVE_QUERY, query.text, fields=fields)
            system = system if options.rerank_enabled else without_reranking(system)
        asked = _make_query(query, query_type, intent, confidence)
        _check_type(query_type, system, rules.conditions.values())
        system = system if limit is None else apply_limit(system, limit)
        switched_off = rules.explain_off(asked)
        sources = self._config.choose_sources(lists or {}, switched_off)
        strict, spaces = self._config.settings.strict, self._tools.spaces
        hits, failed = await gather_lists(sources, asked.text or "", strict=strict, spaces=spaces)
        merged = rules.merge_rows(system)
        runs = align_lists(asked, hits, system.base_runs, merged, spaces)
        scoring = QueryScoring(self._tools, asked, hits, started)
        documents: tuple[LiveDocument, ...] = ()
        scorer, signals = system, {}
        if runs is not None:
            unfolded, runs = unfold_collapse(system), scoring.add_given_scores(runs)
            plain, scored = await scoring.score_system(unfolded, runs)
            documents = rank_documents(plain, scored, hits)
            is_last = system.collapse is not None and system.collapse.place == "reranked"
            [scorer] = (plain.stages or {}).values() if is_last else [plain]
            signals = compute_signals(scorer, scored) if system.abstain else {}
        failures = (f"source {name}: {why}" for name, why in failed.items())
        key, chosen = system.class_key, choose_class(system, asked)
        rule = self._config.crag
        verdict = judge_documents(documents, asked, scorer, spaces, rule, scoring.unread)
        decision = None
        if (abstain := system.abstain) is not None:
            decision = decide_answer(abstain, system.name, signals.get(abstain.signal))
        return LiveResult(
            documents=documents,
            answered=decision is None or decision.answered,
            signal=None if decision is None else decision.signal,
            signal_value=None if decision is None else decision.value,
            provider=scoring.provider,
            degraded="; ".join((*failures, *filter(None, [scoring.degraded]))),
            failures=tuple(failure for answer in scoring.answers for failure in answer.failures),
            source_failures=failed,
            skipped=runs is None or scoring.is_skipped,
            switched_off=switched_off,
            query_type=chosen if key is BY_TYPE else None,
            intent=chosen if key is BY_INTENT else None,
            rerank_ms=scoring.took_ms,
            total_ms=1e3 * (time.monotonic() - started),
            crag=verdict,
            crag_unknown=rule is not None and verdict is None,
            v2_enabled=self._config.v2_enabled,
            returned={name: len(hits[name]) for name in system.base_runs if name in hits},
            strategies=rules.strategies,
        )

    def search_sync(self, *args: Any, **options: Any) -> LiveResult:  # noqa: ANN401 - of search
        """Call :meth:`search` without an event loop, inside ``with pipeline``."""
        if self._thread is None:
            raise ConfigError("the pipeline is not open: search_sync inside 'with pipeline'")
        return self._thread.run(self.search(*args, **options))

    def summarize_calls(self) -> dict[str, dict[str, Any]]:
        """Calls, search units, tokens, cost and latencies by rerank list, over recent events.

        A cost is None where a provider's price is not known.
        """
        return {
            name: summarize_events(self._store.read_events(name)) for name in self._config.chains
        }

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise ConfigError("the pipeline is open already: one pipeline, one 'with'")
        self._stack, config = AsyncExitStack(), self._config
        try:
            chains = await open_chains(config.chains, self._stack, self._store, config.spaces)
        except BaseException:
            await self.__aexit__()
            raise
        self._tools = ScoringTools(
            chains,
            {name: settings.deadline for name, (_, settings) in config.chains.items()},
            {**config.spaces, **{name: chain.score_space for name, chain in chains.items()}},
            config.rules,
            self._store,
            config.keeps_unread,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        stack, self._stack, self._tools = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    def __enter__(self) -> Self:
        thread = LoopThread()
        try:
            thread.run(self.__aenter__())
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.run(self.__aexit__())
            thread.close()


def _read_roles(roles: Mapping[str, Collection[str]] | None) -> dict[str, frozenset[str]]:
    """Roles by name of the source.

    Raises:
        ConfigError: The roles of a source are text, and no list of names.
    """
    for name, names in (roles or {}).items():
        if isinstance(names, str):
            raise ConfigError(f"roles: {name}: give a list of names, such as [{names!r}]")
    return {name: frozenset(names) for name, names in (roles or {}).items()}


def _load_tuned_system(
    path: Path,
    name: str | None,
    *,
    dataset: str | None = None,
    roles: Mapping[str, frozenset[str]] | None = None,
    folders: Collection[Path] | None = None,
    overrides: Sequence[str] = (),
) -> tuple[System, ListRules, Mapping[str, ScoreSpace], CragRule | None]:
    """Read a system of an experiment, and its dataset's ``dataset.yaml``.

    Trained fusions are fitted to all judged queries, which reads the whole dataset.

    Args:
        path: The experiment.
        name: The system; None = the gated one, or the only one.
        dataset: As the experiment names it; None = its only one.
        roles: Roles of each source; then the dataset need not be there.
        folders: Where named datasets live; None = beside the experiment, and ``datasets`` here and
            above.
        overrides: ``KEY=VALUE`` each: values that replace the file's.

    Returns:
        The system, fitted; how lists are read; the score space of each rerank list; the thresholds
        of CRAG's verdict, None = there are none.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    experiment, source = read_experiment(path, overrides=overrides)
    if name is None and len(experiment.systems) == 1:
        (name,) = experiment.systems
    if name is None and experiment.gate is not None and experiment.gated_system is not None:
        name = experiment.gated_system.name
    if name is None:
        known = ", ".join(map(repr, experiment.systems))
        raise ConfigError(f"{path}: several systems: choose one with system=…: {known}")
    system = experiment.find_system(name, str(path))
    if roles is not None:
        if needs_fitting(system):
            raise ConfigError(
                f"system {system.name!r} is trained, which needs the dataset: leave out 'roles'"
            )
        return system, ListRules(roles, {}, experiment.ties), {}, experiment.crag
    places = find_folders(folders, source.path)
    file = find_one_dataset(experiment, source, dataset, places, where="dataset=…")
    spec, _ = read_spec(file)
    rules = make_rules(spec, system.base_runs, experiment.ties)
    spaces = {run: facts.score_space for run, facts in spec.rerank.items()}
    alone = experiment.model_copy(update={"systems": {system.name: system}})
    alone.check_datasets(spec.run_roles, spec.rerank, source)
    if needs_fitting(system):
        loaded = load_dataset(
            file,
            runs=system.base_runs,
            rerankers=system.reranker_names,
            merged=merge_rules([system]),
        )
        aligned = loaded.aligned(system.base_runs, ties=experiment.ties)
        system = fit_system(system, aligned)
    return system, rules, spaces, experiment.crag


def make_rules(spec: DatasetSpec, names: Collection[str], ties: Ties) -> ListRules:
    """Return the rules by which the lists of a dataset are read.

    Args:
        spec: What its ``dataset.yaml`` says.
        names: The runs that are read.
        ties: The tie rule.
    """
    runs = {name: spec.runs[name] for name in names}
    return ListRules(
        roles={name: frozenset(run.roles) for name, run in runs.items()},
        options={name: facts.read_options for name, facts in {**runs, **spec.rerank}.items()},
        ties=ties,
        conditions={name: run.when for name, run in runs.items() if run.when is not None},
    )


def _make_query(
    query: str | Query, query_type: str | None, intent: str | None, confidence: float | None
) -> Query:
    """The query with these fields in place of its own.

    Raises:
        ConfigError: It is neither text nor a query, its text is empty, or a field is not what it
            should be.
    """
    if not isinstance(query, str | Query):
        raise ConfigError(f"query: text or a Query is needed, given {query!r:.80}")
    made = query if isinstance(query, Query) else Query(LIVE_QUERY, query)
    if made.text is not None and (not isinstance(made.text, str) or not made.text.strip()):
        # BR-003: an empty text runs no search.
        raise ConfigError(f"query: a text that is not empty is needed, given {made.text!r:.80}")
    made = replace(
        made,
        type=made.type if query_type is None else query_type,
        intent=made.intent if intent is None else intent,
        confidence=made.confidence if confidence is None else confidence,
    )
    for name, value in (("query_type", made.type), ("intent", made.intent)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError(f"{name}: a name or None is needed, given {value!r:.80}")
    if made.confidence is not None and not _lies_within(made.confidence, 1.0):
        raise ConfigError(
            f"confidence: a number from 0 to 1 or None is needed, given {made.confidence!r:.80}"
        )
    return made


def _check_elapsed(elapsed_ms: float) -> None:
    """Refuse a time that is none.

    Raises:
        ConfigError: It is not a finite number from 0 on.
    """
    if not _lies_within(elapsed_ms, sys.float_info.max):
        raise ConfigError(
            f"elapsed_ms: a finite number of milliseconds from 0 on is needed, given "
            f"{elapsed_ms!r:.80}"
        )


def _check_type(
    query_type: str | None, system: System, conditions: Collection[Mapping[str, Collection[str]]]
) -> None:
    """Refuse a type that nothing knows, where the system has numbers by type.

    The types of CONV-03-05 are known to every system: one without numbers gets those of
    ``hybrid``.

    Args:
        query_type: As the caller names it; None = not known.
        system: The system.
        conditions: When sources are on.

    Raises:
        UnknownNameError: The type is unknown.
    """
    if query_type is None or system.class_key is not BY_TYPE:
        return
    known = {*CONV_03_05, *(system.query_classes or ())}
    for condition in conditions:
        known |= set(condition.get(BY_TYPE.field, ()))
    if query_type not in known:
        raise UnknownNameError("type", query_type, known, where="query_type")


def _lies_within(value: object, high: float) -> bool:
    """Whether it is a number from 0 to this one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return bool(0 <= value <= high)  # type: ignore[operator] # a Real has an order

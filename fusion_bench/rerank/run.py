"""``fusion-bench rerank`` as functions: score a list, estimate its price, simulate failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.io.outputs import check_output, is_earlier_output
from fusion_bench.io.provenance import write_with_meta
from fusion_bench.rerank.calls.chain import ProviderChain
from fusion_bench.rerank.candidates import ScoringRequest, find_system, prepare_request
from fusion_bench.rerank.clients import Provider
from fusion_bench.rerank.config import RerankConfig, read_rerank_config, select_providers
from fusion_bench.rerank.ledger import CostEstimate, estimate_cost
from fusion_bench.rerank.scoring_run import OnProgress, run_key, score_queries
from fusion_bench.rerank.simulation.replay import run_simulation
from fusion_bench.rerank.simulation.simulation_input import measure_outcomes
from fusion_bench.rerank.simulation.simulation_result import SimulationResult
from fusion_bench.rerank.store import ScoreStore
from fusion_bench.rerank.store_lock import lock_models
from fusion_bench.rerank.written_list import WrittenList, build_list
from fusion_bench.util.files.atomic_files import require_folder
from fusion_bench.util.files.real_paths import resolve_path


@dataclass(frozen=True)
class RerankOptions:
    """What is reranked, and how.

    Attributes:
        dataset: The ``dataset.yaml``.
        system: Name of a system of the experiment, of a run, or of a fusion method.
        experiment: The experiment's YAML file; None = only runs and fusion methods are known.
        config: YAML file with providers, chain and settings; None = the defaults.
        overrides: ``KEY=VALUE`` for the first provider, or for the simulation.
        provider: Name in the configuration, or a method; None = the configured chain.
        fallbacks: The same, for when the first provider fails.
        depth: Candidates per query and trial.
        split: Only queries of this split; None = all judged queries.
        out: The list; None = ``rerank/SYSTEM-PROVIDER.jsonl`` beside the ``dataset.yaml``.
        store: The score store.
        max_cost: Stop before the price exceeds this; None = no limit.
        measure: Measure of a simulation.
        reranker: Its stored list of the first provider; None = the system's own.
        fallback_list: Its stored list of a second provider; None = there is none.
    """

    dataset: Path
    system: str
    experiment: Path | None
    config: Path | None
    overrides: Sequence[str]
    provider: str | None
    fallbacks: Sequence[str]
    depth: int
    split: str | None
    out: Path | None
    store: Path
    max_cost: float | None
    measure: str
    reranker: str | None
    fallback_list: str | None


@dataclass(frozen=True)
class _CheckedRun:
    """A run whose inputs and options were checked; nothing has been asked yet."""

    path: Path
    request: ScoringRequest
    providers: list[Provider]
    config: RerankConfig


def _check_run(options: RerankOptions) -> _CheckedRun:
    system = find_system(options.system, options.dataset, options.experiment)
    config = read_rerank_config(options.config)
    providers = select_providers(config, options.provider, options.fallbacks, options.overrides)
    name = safe_file_name(f"{system.name}-{providers[0].method}")
    path = options.out or options.dataset.parent / "rerank" / f"{name}.jsonl"
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
    request = prepare_request(options.dataset, system, depth=options.depth, split=options.split)
    return _CheckedRun(path, request, providers, config)


def estimate_list(options: RerankOptions) -> CostEstimate:
    """What :func:`score_list` would ask for and cost; asks nobody.

    Raises:
        FusionBenchError: An input or an option breaks a rule.
    """
    run = _check_run(options)
    with closing(ScoreStore(options.store)) as store:
        return estimate_cost(run.request, run.providers[0], store)


def score_list(options: RerankOptions, on_progress: OnProgress) -> WrittenList:
    """Score every candidate that the store does not know, and write the list.

    Waits for another run that asks the same model and keeps its scores in the same store.

    Args:
        options: What is reranked, and how.
        on_progress: Called with queries done, queries in all, and the price so far.

    Raises:
        FusionBenchError: An input or an option breaks a rule, no query could be scored, the price
            limit was reached, or the list cannot be written. Scores stay in the store.
    """
    run = _check_run(options)
    # The ledger counts retries; without a handler each would print its event's bare name.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    identities = [provider.model_identity for provider in run.providers]
    with lock_models(options.store, identities), closing(ScoreStore(options.store)) as store:
        scoring = score_queries(
            run.request,
            run.providers,
            run.config.resolved_settings(),
            store,
            max_cost=options.max_cost,
            on_progress=on_progress,
        )
        chain, answers = asyncio.run(scoring)
        events = store.read_events(run_key(run.request, run.providers[0]))
    data, meta = build_list(run.request, chain, answers, events, _settings_record(run, chain))
    write_with_meta(run.path, data, meta)
    whole, root = resolve_path(run.path), resolve_path(options.dataset.parent)
    place = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else run.path.name
    entry = f"{run.path.stem}: {{path: {place}, score_space: {meta.score_space}}}"
    return WrittenList(run.path, meta, f"rerank:\n  {entry}", data.count(b"\n"))


def simulate_list(
    options: RerankOptions, on_progress: Callable[[int, int], None]
) -> SimulationResult:
    """Replay a stored list under failures and deadlines.

    Args:
        options: What is replayed.
        on_progress: Called with the points done and the points in all.

    Raises:
        ConfigError: An input breaks a rule.
    """
    config = read_rerank_config(options.config)
    spec = config.override_simulation(options.overrides)
    outcomes = measure_outcomes(
        options.dataset,
        find_system(options.system, options.dataset, options.experiment),
        options.measure,
        reranker=options.reranker,
        fallback=options.fallback_list,
    )
    return run_simulation(outcomes, spec, config.simulated_settings(), on_progress)


def safe_file_name(name: str) -> str:
    """A name as a part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "list"


def _settings_record(run: _CheckedRun, chain: ProviderChain) -> dict[str, object]:
    return {
        "profile": run.config.profile,
        "split": run.request.split,
        "providers": [provider.model_dump(mode="json") for provider in run.providers],
        "identities": [asdict(session.identity) for session in chain.sessions],
        "settings": run.config.resolved_settings().model_dump(mode="json"),
    }

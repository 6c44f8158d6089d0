"""Input of a simulation: the measure of each list that a query may end with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fusion_bench.blend import RerankBlend
from fusion_bench.blend.none import NoBlend
from fusion_bench.blend.replace import Replace
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.evaluation.trials.evaluate_trials import mean_of_trials
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.rerank.simulation.simulation_result import SimulationInput


def measure_outcomes(
    path: Path,
    system: System,
    measure: str,
    *,
    reranker: str | None = None,
    fallback: str | None = None,
) -> SimulationInput:
    """Evaluate a system with its rerank list, with the fallback's, and without any.

    Values are means over the trials of the lists.

    Args:
        path: The dataset's ``dataset.yaml``.
        system: With a blend; without one the rerank list replaces the fused order.
        measure: Its name.
        reranker: The list of the first provider; the blend's own, or the only one, by default.
        fallback: The list of the second provider; None = there is none.

    Raises:
        UnknownNameError: The dataset has no such list.
    """
    spec, source = read_spec(path)
    configured = system.blend.reranker_name
    first = reranker or configured or next(iter(spec.rerank), "")
    lists = (first, fallback or first)
    for name in lists:
        if name not in spec.rerank:
            raise UnknownNameError("rerank list", name, spec.rerank, where=spec.name)
    dataset = load_dataset(path, runs=system.base_runs, rerankers=dict.fromkeys(lists))
    # A document that the list does not score ranks below.
    template = Replace(reranker=first, missing="below") if configured is None else system.blend
    blends = [template.model_copy(update={"reranker": name}) for name in lists]
    systems = [system.model_copy(update={"blend": blend}) for blend in (*blends, NoBlend())]
    parsed = parse_measure(measure, binary_relevance=spec.binary_relevance, where=str(source.path))
    every = dataset.trials[: dataset.count_trials()]
    trials = [_evaluate_trial(trial, systems, parsed) for trial in every]
    origin = "the system has no blend" if configured is None else "the system's blend"
    depth = template.depth if isinstance(template, RerankBlend) else 0
    label = f"reranker {first}, {template.method} over the first {depth} ({origin})"
    if len(trials) > 1:
        label += f", mean over {len(trials)} trials"
    return SimulationInput(parsed.name, mean_of_trials(np.stack(trials)), label, fallback)


def _evaluate_trial(dataset: Dataset, systems: Sequence[System], measure: Measure) -> FloatArray:
    """(systems, Q): the values of one measure."""
    runs = align(
        dataset.qrels,
        [dataset.runs[name] for name in systems[0].base_runs],
        rerankers=list(dataset.rerankers.values()),
        queries=dataset.queries,
        complete=dataset.spec.judgments == "complete",
    )
    runs = replace(runs, binary_relevance=dataset.spec.binary_relevance)
    scores = evaluate_systems(systems, runs, [measure], spaces=dataset.spaces, qrels=dataset.qrels)
    return np.stack([score.values[0] for score in scores])

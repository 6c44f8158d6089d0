"""Input of a simulation: the measure of each list that a query may end with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fusion_bench.blend import Blend, RerankBlend
from fusion_bench.blend.none import NoBlend
from fusion_bench.blend.replace import Replace
from fusion_bench.data.alignment import align
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.scores import evaluate_systems
from fusion_bench.experiment.system import System
from fusion_bench.io import load_dataset
from fusion_bench.io.dataset_config import DatasetSpec, read_spec
from fusion_bench.measures import parse_measure
from fusion_bench.rerank.simulation.simulation_result import SimulationInput


def measure_outcomes(
    path: Path,
    system: System,
    *,
    measure: str,
    reranker: str | None = None,
    fallback: str | None = None,
) -> SimulationInput:
    """Evaluate a system with its rerank list, with the fallback's, and without any.

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
    given = reranker or system.blend.reranker_name or next(iter(spec.rerank), "")
    first, second = _check_list_name(given, spec), _check_list_name(fallback or given, spec)
    lists = dict.fromkeys((first, second))
    dataset = load_dataset(path, runs=system.runs, rerankers=lists)
    runs = align(
        dataset.qrels,
        [dataset.runs[name] for name in system.runs],
        rerankers=[dataset.rerankers[name] for name in lists],
        queries=dataset.queries,
        complete=spec.judgments == "complete",
    )
    blends: tuple[Blend, ...] = (_blend_with(system, first), _blend_with(system, second), NoBlend())
    systems = [system.model_copy(update={"blend": blend}) for blend in blends]
    asked = parse_measure(measure, binary_relevance=spec.binary_relevance, where=str(source.path))
    scores = evaluate_systems(systems, runs, [asked], spaces=dataset.spaces, qrels=dataset.qrels)
    values = np.stack([score.values[0] for score in scores])
    return SimulationInput(asked.name, values, _describe_list(system, blends[0], first), fallback)


def _describe_list(system: System, blend: Blend, reranker: str) -> str:
    """The list that is replayed, and its blend, in words."""
    origin = "the system's blend" if system.blend.reranker_name else "the system has no blend"
    depth = blend.depth if isinstance(blend, RerankBlend) else 0
    return f"reranker {reranker}, {blend.method} over the first {depth} ({origin})"


def _check_list_name(name: str, spec: DatasetSpec) -> str:
    if name not in spec.rerank:
        raise UnknownNameError("rerank list", name, spec.rerank, where=spec.name)
    return name


def _blend_with(system: System, reranker: str) -> Blend:
    """The system's own blend on that list; a document it did not score stands below."""
    if system.blend.reranker_name is None:
        return Replace(reranker=reranker, missing="below")
    return system.blend.model_copy(update={"reranker": reranker})

"""Final lists of a system of an experiment, or of a fusion of files at hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench.checks.dataset_facts import select_repeat
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.prepared_dataset import check_predictions
from fusion_bench.experiment.experiment import Experiment, apply_switch, find_one_dataset
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.load_records import load_run
from fusion_bench.io.outputs import refuse_inputs
from fusion_bench.io.raw_files import DEFAULT_LAYOUT, FileLayout
from fusion_bench.io.write_run import RunRows
from fusion_bench.methods.fuse import fusions
from fusion_bench.ranking.final_lists import FinalLists, align_all_queries, make_final_lists
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting


def fuse_experiment(
    experiment: Experiment,
    source: Source,
    system: str,
    *,
    folders: Collection[Path],
    dataset: str | None = None,
    split: str | None = None,
    trial: int = 1,
) -> FinalLists:
    """The final lists of one system of an experiment.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        system: Name of the system.
        folders: Where named datasets live.
        dataset: As the experiment names it; needed if it names several.
        split: Only queries of this split; None = every query that a run answers, judged or not.
        trial: Which file of each list that has several.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    chosen = experiment.find_system(system)
    file = find_one_dataset(experiment, source, dataset, folders)
    spec, _ = read_spec(file)
    refuse_inputs(spec.file_paths(file.parent))
    alone = experiment.model_copy(update={"systems": {system: chosen}})
    alone.check_datasets(spec.run_roles, spec.rerank, source)
    loaded = select_repeat(
        load_dataset(
            file,
            runs=chosen.base_runs,
            rerankers=chosen.reranker_names,
            every_query=False if needs_fitting(chosen) else None,  # what is trained needs judgments
        ),
        trial,
    )
    check_predictions([chosen], source, loaded)
    runs = align_all_queries(
        [loaded.runs[name] for name in chosen.base_runs],
        rerankers=list(loaded.rerankers.values()),
        queries=loaded.queries,
        ties=experiment.ties,
        spaces=loaded.spaces,
    )
    kept = runs if split is None else _queries_of_split(runs, loaded, split)
    if needs_fitting(chosen):
        chosen = fit_system(chosen, loaded.aligned(chosen.base_runs, ties=experiment.ties))
    return make_final_lists(chosen, kept)


def _queries_of_split(runs: AlignedRuns, dataset: Dataset, split: str) -> AlignedRuns:
    known = {query.id for query in dataset.queries.values() if query.split == split}
    is_kept = np.array([query in known for query in runs.queries], dtype=bool)
    if not is_kept.any():
        splits = {query.split for query in dataset.queries.values() if query.split is not None}
        raise UnknownNameError("split", split, splits, where=f"--split: {dataset.name}")
    return runs.subset(is_kept)


def fuse_files(
    files: Mapping[str, Path], fusion: Mapping[str, Any], layout: FileLayout = DEFAULT_LAYOUT
) -> FinalLists:
    """Fuse run files that no dataset describes; the lists are named as the method is.

    Args:
        files: Run files by name.
        fusion: The fusion's keys, as in YAML.
        layout: How the files name their columns.

    Raises:
        FusionBenchError: A file or the fusion breaks a rule.
    """
    made = fusions.build(fusion)
    runs = [load_run(path, name=name, layout=layout.for_list(name)) for name, path in files.items()]
    system = apply_switch(System(name=str(fusion["method"]), runs=tuple(files), fusion=made))
    return make_final_lists(system, align_all_queries(runs))


def make_run_rows(lists: FinalLists, *, has_sources: bool) -> RunRows:
    """Final lists by columns, as a file holds them.

    Args:
        lists: The lists.
        has_sources: With the rank and the score of each document in every source.
    """
    sources: dict[str, tuple[list[int | None], list[float | None]]] = {}
    if has_sources:
        tables = zip(
            lists.sources, lists.source_ranks.tolist(), lists.source_scores.tolist(), strict=True
        )
        for name, ranks, scores in tables:
            pairs = list(zip(ranks, scores, strict=True))
            sources[name] = (
                [rank or None for rank, _ in pairs],
                [score if rank else None for rank, score in pairs],
            )
    return RunRows(
        name=lists.system,
        queries=lists.query_ids,
        documents=lists.document_ids,
        ranks=lists.ranks.tolist(),
        scores=lists.scores.tolist(),
        sources=sources,
    )

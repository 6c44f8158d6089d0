"""Candidates: the top of a system's fused list for each query, with texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Document
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.experiment.experiment import apply_switch, read_experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import documents_of, read_spec
from fusion_bench.io.held_out import read_everything, refuse_learning
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import fusions
from fusion_bench.ranking.final_lists import rank_queries
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.ranking.system_ranking import SystemRanking


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
            path, runs=system.base_runs, rerankers=fusing.reranker_names, every_query=None
        )
    queries = tuple(_collect_candidates(dataset, fusing, split, documents_of(path)))
    return ScoringRequest(
        dataset.name,
        dataset.fingerprint,
        system,
        depth,
        split,
        queries,
        repeats=dataset.count_repeats(),
    )


def _collect_candidates(
    dataset: Dataset, system: System, split: str | None, texts: Mapping[str, Document]
) -> Iterator[QueryCandidates]:
    """The candidates of every repeat, so that a blend has each score that a repeat asks for."""
    if split is not None and split not in dataset.splits:
        where = f"--split: {dataset.name}"
        raise UnknownNameError("split", split, dataset.splits, where=where)
    repeats: dict[str, list[QueryCandidates]] = {}
    for runs in dataset.align_repeats([*dataset.runs]).common_repeats().repeats:
        for query in _rank_candidates(dataset, system, runs, split, texts):
            repeats.setdefault(query.id, []).append(query)
    for several in repeats.values():
        lists = [query.candidates for query in several]
        # The union of the lists, by the best rank in any; of equal ranks the earlier list's.
        pairs = chain.from_iterable(zip_longest(*(each.items() for each in lists)))
        yield replace(several[0], candidates=dict(pair for pair in pairs if pair is not None))


def _rank_candidates(
    dataset: Dataset,
    system: System,
    runs: AlignedRuns,
    split: str | None,
    texts: Mapping[str, Document],
) -> Iterator[QueryCandidates]:
    """The candidates of one repeat."""
    for _, ranking in rank_queries(system, runs):
        for q, query in enumerate(ranking.runs.queries):
            known = dataset.queries.get(query)
            if split is not None and (known is None or known.split != split):
                continue
            if known is None or not known.text:
                raise DataError(
                    f"{dataset.name}: query {query!r} has no 'text': give it one in the queries "
                    "file ('queries' of dataset.yaml)"
                )
            top = dict(_top_candidates(dataset.name, ranking, q, texts))
            if top:
                yield QueryCandidates(query, known.text, top)


def _top_candidates(
    dataset: str, ranking: SystemRanking, q: int, texts: Mapping[str, Document]
) -> Iterator[tuple[str, str]]:
    runs = ranking.runs
    rows = np.arange(runs.offsets[q], runs.offsets[q + 1])
    rows = rows[ranking.positions[rows] > 0]
    for row in rows[np.argsort(ranking.positions[rows])]:
        name = runs.vocabulary[runs.documents[row]]
        if name not in texts:
            raise DataError(
                f"{dataset}: document {name!r}, a candidate of query {runs.queries[q]!r}, has "
                "no text in 'documents' of dataset.yaml"
            )
        yield name, texts[name].text

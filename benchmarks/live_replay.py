"""Does the live pipeline order every query as ``eval`` does? ``python -m benchmarks.live_replay``.

Each query of each collection is answered alone, from its lists, with a reranker that returns the
scores of the stored list. The order must be that of the batch evaluation.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench import Pipeline, System, read_experiment
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.models.rerank_config import RerankSettings
from fusion_bench.models.reranker_protocol import Identity, Reply
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.ranking.system_ranking import ranked_lists
from fusion_bench.serving.live.configuration import configure_pipeline
from fusion_bench.serving.live.final_list import LiveResult
from fusion_bench.serving.live.pipeline import make_rules
from fusion_bench.util.formatting import pluralize

ROOT = Path(__file__).parents[1]
#: Of a system that is not compared whole, every so many queries are.
RARE = 100
#: So many systems are compared with ``--toy``.
TOYS = 3
#: No time limit, and an error where a score is missing.
PATIENT = RerankSettings()


class StoredList:
    """The list of each query, read when it is asked for.

    Args:
        run: The lists.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._index = {query: q for q, query in enumerate(run.queries)}

    def of_query(self, query: str) -> dict[str, float]:
        """Document → score, best first; empty where there is no list."""
        if (q := self._index.get(query)) is None:
            return {}
        rows = slice(*self._run.offsets[q : q + 2].tolist())
        scores = self._run.scores[rows].tolist()
        codes = self._run.documents[rows].tolist()
        return {self._run.vocabulary[c]: s for c, s in zip(codes, scores, strict=True)}


class StoredScores:
    """A reranker whose documents are ids, and whose scores are those of a stored list.

    Args:
        name: The list's name.
        scores: Query → document → score.
        space: What the scores mean.
    """

    batch = 1000

    def __init__(self, name: str, scores: StoredList, space: Any) -> None:  # noqa: ANN401
        self.identity = Identity("stored", name, space)
        self._scores = scores

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """The stored score of each document."""
        known = self._scores.of_query(query)
        return Reply(tuple(known[document] for document in documents))


@dataclass(frozen=True)
class Replay:
    """A collection whose queries can be answered one by one.

    Attributes:
        dataset: The collection.
        runs: Its aligned lists.
        lists: Its lists by name, rerank lists included.
    """

    dataset: Dataset
    runs: AlignedRuns
    lists: Mapping[str, StoredList]

    @classmethod
    def load(cls, path: Path) -> Replay:
        """Read a collection."""
        dataset = load_dataset(path)
        tables = {**dataset.runs, **dataset.rerankers}
        lists = {name: StoredList(run) for name, run in tables.items()}
        return cls(dataset, dataset.aligned(list(dataset.runs)), lists)

    def expected_orders(self, system: System, runs: AlignedRuns) -> dict[str, list[str]]:
        """Query → documents as ``eval`` orders them.

        Args:
            system: The system, fitted.
            runs: The queries.
        """
        orders: dict[str, list[str]] = {}
        for index, plain, part in plain_systems(system, runs):
            view, (placed, _) = ranked_lists(plain, part)
            known = list(view.vocabulary)
            for q, row in enumerate(index.tolist()):
                rows = np.arange(view.offsets[q], view.offsets[q + 1])
                kept = rows[(placed[rows] > 0) & (placed[rows] <= (plain.top_k or len(placed)))]
                ordered = kept[np.argsort(placed[kept])]
                orders[runs.queries[row]] = [known[view.documents[n]] for n in ordered]
        return orders

    async def live_orders(self, system: System, queries: Iterable[str]) -> dict[str, list[str]]:
        """Query → documents as the live pipeline orders them.

        Args:
            system: The system, fitted.
            queries: Ids of the queries.
        """
        spaces = self.dataset.spaces
        rerankers = {
            name: StoredScores(name, self.lists[name], spaces[name])
            for name in system.reranker_names
        }
        rules = make_rules(self.dataset.spec, system.base_runs, self.runs.ties)
        config = configure_pipeline(system, rules, rerankers=rerankers, settings=PATIENT)
        pipeline = Pipeline.from_config(config)
        async with pipeline:
            return {
                query: [name for name, _ in (await self._search(pipeline, query)).ranked]
                for query in queries
            }

    async def _search(self, pipeline: Pipeline, query: str) -> LiveResult:
        known = self.dataset.queries.get(query) or Query(query)
        asked = replace(known, text=query)  # which is how the stored scores are found
        return await pipeline.search(asked, self._live_lists(pipeline.system, query))

    def _live_lists(self, system: System, query: str) -> dict[str, list[tuple[str, float, str]]]:
        """The lists of one query; the text of a document that can be scored is its id."""
        return {
            name: [(d, score, d) for d, score in self.lists[name].of_query(query).items()]
            for name in system.base_runs
        }

    def find_differences(
        self, system: System, *, every: int = 1, first: int = 0, fit_to: AlignedRuns | None = None
    ) -> tuple[int, list[str]]:
        """How many queries were compared, and those that are ordered otherwise.

        Args:
            system: Any system.
            every: Only every so many queries …
            first: … from this one on.
            fit_to: The queries that trained parts learn from; all by default.
        """
        keep = np.arange(len(self.runs.queries)) % every == first
        runs = self.runs.subset(keep)
        fitted = fit_system(system, fit_to or self.runs)
        expected = self.expected_orders(fitted, runs)
        live = asyncio.run(self.live_orders(fitted, runs.queries))
        return len(live), [query for query in live if live[query] != expected[query]]


def list_replays(root: Path = ROOT) -> Iterator[tuple[Path, tuple[System, ...]]]:
    """Every collection of ``datasets`` with the systems of the experiments that name it alone."""
    systems: dict[str, dict[str, System]] = {}
    for path in sorted((root / "experiments").glob("*.yaml")):
        experiment, _ = read_experiment(path)
        for name in experiment.dataset_names:
            systems.setdefault(name, {}).update(experiment.systems)
    for path in sorted((root / "datasets").glob("*/dataset.yaml")):
        if path.parent.name in systems:
            yield path, tuple(systems[path.parent.name].values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the orders, and print a line a system.

    Args:
        arguments: Words of the command line; None = those of the process.

    Returns:
        The exit code, which is 1 where an order differs.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    note = f"of these systems every query is compared, of others one in {RARE}"
    parser.add_argument("systems", nargs="*", help=note)
    parser.add_argument("--toy", action="store_true", help="one query of each of a few systems")
    options = parser.parse_args(arguments)
    total = 0
    for path, systems in list_replays():
        replay = Replay.load(path)
        rare = len(replay.runs.queries) if options.toy else RARE
        for number, system in enumerate(systems[:TOYS] if options.toy else systems):
            began = time.perf_counter()
            every = 1 if system.name in options.systems else rare
            compared, different = replay.find_differences(system, every=every, first=number % every)
            total += len(different)
            print(
                f"{replay.dataset.name}: {system.name}: {pluralize(compared, 'query')}, "
                f"{len(different):,} ordered otherwise ({time.perf_counter() - began:.1f} s)"
            )
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())

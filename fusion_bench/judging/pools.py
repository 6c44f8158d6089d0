"""Pools: unjudged documents that systems return within a depth, the orders in which to judge.

Each order takes the documents of one query, those that are judged among them, and what is known of
these; it gives all of them in order. Queries come one after the other, so that a judge reads each
query once; :func:`order_queries` puts them in order.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from fusion_bench.checks.completions import collect_top
from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import Experiment, find_one_dataset, read_experiment
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import find_dataset, read_spec
from fusion_bench.judging.options import OrderName
from fusion_bench.ranking.collapse import add_system_parents
from fusion_bench.ranking.final_lists import align_all_queries, list_parts
from fusion_bench.ranking.plain_systems import fit_system, needs_fitting
from fusion_bench.util.formatting import list_names, pluralize


@dataclass(frozen=True, eq=False)
class JudgedSystems:
    """Systems on one dataset.

    Attributes:
        path: The ``dataset.yaml``.
        dataset: With the lists that the systems use.
        experiment: These systems on this dataset alone.
        source: Where it was read from.
    """

    path: Path
    dataset: Dataset
    experiment: Experiment
    source: Source

    @property
    def systems(self) -> Mapping[str, System]:
        """The systems by name."""
        return self.experiment.systems


def is_experiment(target: Path) -> bool:
    """Whether a file is an experiment; else it names a dataset."""
    if target.suffix not in {".yaml", ".yml"} or not target.is_file():
        return False
    data = read_yaml(target).data
    return isinstance(data, Mapping) and "systems" in data


def read_judged_systems(
    target: Path,
    *,
    folders: Collection[Path],
    systems: Sequence[str] = (),
    dataset: str | None = None,
    overrides: Sequence[str] = (),
) -> JudgedSystems:
    """Read the systems of an experiment, or each list of a dataset as a system.

    Args:
        target: The experiment, or a dataset: its name, its folder or its ``dataset.yaml``.
        folders: Where named datasets live.
        systems: Names of the systems; empty = all. The baseline of an experiment is added.
        dataset: One of the experiment's datasets, as the experiment or its ``dataset.yaml`` names
            it; needed where there are several.
        overrides: Values of ``--set``.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    if is_experiment(target):
        experiment, source = read_experiment(target, overrides=overrides)
        path = find_one_dataset(experiment, source, dataset, folders)
    else:
        for option, value in {"--dataset": dataset, "--set": [*overrides]}.items():
            if value:
                raise ConfigError(f"{option}: {target} is a dataset, and only experiments take it")
        path = find_dataset(str(target), folders)
        names = list(read_spec(path)[0].runs)
        alone = {name: {"runs": [name]} for name in names}
        source = Source(path, {"dataset": str(path), "baseline": names[0], "systems": alone})
        experiment = parse_model(Experiment, source.data, source.where)
    wanted = dict.fromkeys((experiment.baseline, *systems)) if systems else experiment.systems
    chosen = {name: experiment.find_system(name) for name in wanted}
    used = dict.fromkeys(name for system in chosen.values() for name in system.base_runs)
    rerankers = {name for system in chosen.values() for name in system.reranker_names}
    merged = merge_rules(chosen.values())
    loaded = load_dataset(path, runs=[*used], rerankers=rerankers, every_query=None, merged=merged)
    kept = experiment.model_copy(update={"systems": chosen, "dataset": str(path), "datasets": ()})
    kept.check_datasets(loaded.spec.run_roles, loaded.spec.rerank, source)
    return JudgedSystems(path, loaded, kept, source)


#: A query and a document.
Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class PooledDocument:
    """A document that some system returns within the depth.

    Attributes:
        query: Id of the query.
        document: Its id.
        ranks: (S,): its rank in the list of each system, 1-based; 0 = beyond the depth. Of several
            repeats of a system the highest.
    """

    query: str
    document: str
    ranks: tuple[int, ...]

    @property
    def pair(self) -> Pair:
        """Query and document."""
        return self.query, self.document

    @property
    def best_rank(self) -> int:
        """Its highest rank in any list."""
        return min(rank for rank in self.ranks if rank)

    @property
    def systems(self) -> int:
        """How many systems return it."""
        return sum(rank > 0 for rank in self.ranks)


def build_pool(judged: JudgedSystems, depth: int) -> tuple[PooledDocument, ...]:
    """Pool the first ``depth`` documents of every system and query.

    Source: Spärck Jones and van Rijsbergen, British Library report 5266, 1975, as TREC pools.
    """
    ranks: dict[Pair, list[int]] = {}
    queries: dict[str, None] = {}
    for number, dataset in enumerate(judged.dataset.repeats, 1):
        ties = judged.experiment.ties
        runs = align_all_queries(
            list(dataset.runs.values()),
            rerankers=list(dataset.rerankers.values()),
            queries=dataset.queries,
            ties=ties,
            spaces=dataset.spaces,
        )
        systems = dict(judged.systems)
        runs = replace(runs, find_parents=dataset.find_parents)
        runs = add_system_parents(runs, systems.values())
        if any(map(needs_fitting, systems.values())):
            known = dataset.aligned(list(dataset.runs), ties=ties)
            systems = {n: fit_system(each, known) for n, each in systems.items()}
        queries |= dict.fromkeys(runs.queries)
        for s, system in enumerate(systems.values()):
            if number > judged.dataset.count_repeats(system.list_keys):
                continue
            parts = list_parts(system, runs)
            top = collect_top(runs, parts, cutoff=depth)
            rows = zip(top.query.tolist(), top.document.tolist(), top.first.tolist(), strict=True)
            for query, document, rank in rows:
                pair = (runs.queries[query], runs.vocabulary[document])
                places = ranks.setdefault(pair, [0] * len(systems))
                places[s] = min(rank, places[s] or rank)
    numbers = {query: n for n, query in enumerate(queries)}
    return tuple(
        PooledDocument(*pair, tuple(ranks[pair]))
        for pair in sorted(ranks, key=lambda pair: (numbers[pair[0]], pair[1]))
    )


#: Documents of one query, whether those that are judged are relevant, and a seed → the order.
Order: TypeAlias = Callable[
    [Sequence[PooledDocument], Mapping[Pair, bool], int], list[PooledDocument]
]


def _sort_by(key: Callable[[PooledDocument, int], Any]) -> Order:
    """An order by a key of document and seed, whatever is relevant."""
    return lambda documents, _, seed: sorted(documents, key=lambda each: key(each, seed))


def move_to_front(
    documents: Sequence[PooledDocument], relevant: Mapping[Pair, bool], _seed: int
) -> list[PooledDocument]:
    """``move-to-front``: go on with the system whose last document was relevant.

    Every system has priority 0. The next document is the highest one left of the system with the
    highest priority, of equals the first. A relevant document sets that priority to 0, any other
    one lowers it by 1. A document that is not judged yet counts as not relevant: what follows it
    is computed again once its grade is known.

    Source: local move-to-front pooling of Cormack, Palmer and Clarke, SIGIR 1998.
    """
    systems = len(documents[0].ranks) if documents else 0
    lists = [
        sorted((each for each in documents if each.ranks[s]), key=lambda each: each.ranks[s])
        for s in range(systems)
    ]
    priorities, order = [0] * systems, dict[Pair, PooledDocument]()
    while any(lists):
        s = max((s for s in range(systems) if lists[s]), key=lambda s: (priorities[s], -s))
        document = lists[s].pop(0)
        if document.pair in order:
            continue
        order[document.pair] = document
        priorities[s] = 0 if relevant.get(document.pair, False) else priorities[s] - 1
    return list(order.values())


def disagreement(document: PooledDocument) -> float:
    """How differently the systems place a document: the variance of 1 / log2(1 + rank).

    The discount is 0 where a system does not return the document; the variance is that of the
    population of systems. For two systems it is a quarter of (w_1 − w_2)², w being the weight of
    the document's gain in each DCG. So the order is that of Carterette, Allan and Sitaraman, SIGIR
    2006: first the document whose gain could move the difference of the two most.
    """
    return statistics.pvariance(
        [1 / math.log2(1 + rank) if rank else 0.0 for rank in document.ranks]
    )


ORDERS: Mapping[OrderName, Order] = {
    # The highest rank in any list first, then what most systems return.
    "pool": _sort_by(lambda each, _: (each.best_rank, -each.systems, each.document)),
    # The list of the first system from its top, then what each next one adds.
    "system": _sort_by(
        lambda each, _: next((s, rank) for s, rank in enumerate(each.ranks) if rank)
    ),
    "move-to-front": move_to_front,
    # The documents on which the systems disagree most.
    "uncertainty": _sort_by(lambda each, _: (-disagreement(each), each.best_rank, each.document)),
    # By a hash of seed, query and document, so that no rank shows.
    "random": _sort_by(lambda each, seed: _draw(seed, *each.pair)),
}


def order_queries(queries: Iterable[str], order: OrderName, seed: int) -> list[str]:
    """The queries one after the other: at random where documents are, else as they come."""
    if order != "random":
        return list(queries)
    return sorted(queries, key=lambda query: _draw(seed, query))


def _draw(seed: int, *names: str) -> bytes:
    """A random key of some names, which no other document or query changes."""
    text = "\0".join((str(seed), *names))
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def keep_queries(
    documents: Sequence[PooledDocument], queries: frozenset[str]
) -> tuple[PooledDocument, ...]:
    """The documents of these queries.

    Raises:
        ConfigError: No system returns anything for one of them.
    """
    missing = sorted(queries - {each.query for each in documents})
    if missing:
        raise ConfigError(
            f"--queries: no list has a document for {pluralize(len(missing), 'query')} "
            f"({list_names(missing[:3])}): check the ids"
        )
    return tuple(each for each in documents if each.query in queries)

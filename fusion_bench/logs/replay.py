"""Does the system that replays production return what production returned?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusion_bench.config.models import parse_model
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.evaluation.ranking.final_lists import align_all_queries, make_final_lists
from fusion_bench.experiment.system import System
from fusion_bench.io.write_run import RunRows
from fusion_bench.logs.lists_of_log import RERANK, STRATEGIES
from fusion_bench.logs.logged_queries import LoggedQuery
from fusion_bench.logs.production import ProductionSystem
from fusion_bench.logs.query_facts import describe_query
from fusion_bench.schema import RRFConfig, SearchStrategy, calculate_rrf_score

#: Name of the system that replays production.
REPLAY = "replay"
#: Differences of scores below this are rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ReplayCheck:
    """How much of the log the replay gives back.

    Attributes:
        queries: How many queries there are.
        same_order: How many have the logged results in the logged order.
        differing: Ids of the others.
        same_scores: How many have the logged combined scores.
    """

    queries: int
    same_order: int
    differing: tuple[str, ...]
    same_scores: int


def count_same_scores(
    queries: Sequence[LoggedQuery], lists: Mapping[str, RunRows], config: RRFConfig
) -> int:
    """How many queries have the combined scores that reciprocal rank fusion gives these lists."""
    ranks: dict[tuple[str, str], dict[SearchStrategy, int]] = {}
    for name, rows in lists.items():
        for pair, rank in zip(
            zip(rows.queries, rows.documents, strict=True), rows.ranks, strict=True
        ):
            ranks.setdefault(pair, {})[SearchStrategy(name)] = rank
    return sum(
        all(
            abs(
                item.relevance.combined
                - calculate_rrf_score(
                    ranks.get((query.id, item.id), {}), query.query.options.weights, config
                )
            )
            <= ROUNDING
            for item in query.items
        )
        for query in queries
    )


def check_replay(
    queries: Sequence[LoggedQuery],
    lists: Mapping[str, RunRows],
    rerank: RunRows | None,
    production: ProductionSystem,
    same_scores: int,
) -> ReplayCheck:
    """Rank every query as the replaying system does, and compare with what was returned."""
    keys = {"name": REPLAY, **production.keys}
    system = parse_model(System, keys)
    facts = [describe_query(query) for query in queries]
    known = {
        each["id"]: Query(each["id"], type=each["type"], confidence=each.get("confidence"))
        for each in facts
    }
    runs = align_all_queries(
        [_to_run(lists[name]) for name in STRATEGIES if name in lists],
        rerankers=[] if rerank is None else [_to_run(rerank)],
        queries=known,
        ties="first_seen",
    )
    final = make_final_lists(system, runs, {RERANK: "unit"}).to_run().to_dict()
    differing = tuple(
        query.id
        for query in queries
        if list(final.get(query.id, {})) != [item.id for item in query.items]
    )
    return ReplayCheck(len(queries), len(queries) - len(differing), differing, same_scores)


def _to_run(rows: RunRows) -> Run:
    roles = frozenset({rows.name}) if rows.name in STRATEGIES else frozenset()
    return Run.from_rows(rows.name, rows.queries, rows.documents, rows.scores, roles=roles)

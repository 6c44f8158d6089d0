"""Systems that rules find something in, and systems in which they find nothing."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fusion_bench.checks.lint_rule import DatasetFacts
from fusion_bench.data.records import ScoreSpace
from fusion_bench.experiment.system import System

ROLES = {
    "bm25": frozenset({"keyword"}),
    "dense": frozenset({"question", "semantic"}),
    "graph": frozenset({"graph"}),
}
PAIR = ("bm25", "dense")
ALL = ("bm25", "dense", "graph")
CONV = {"keyword": 0.35, "semantic": 0.35, "graph": 0.3}


def facts(space: ScoreSpace = "unit", types: frozenset[str] | None = frozenset()) -> DatasetFacts:
    return DatasetFacts("made", ROLES, {"ltr": space}, types, intents=types)


def blend(method: str, **options: object) -> dict[str, Any]:
    return {"method": method, "reranker": "ltr", **options}


def make_system(keys: Mapping[str, Any]) -> System:
    return System.model_validate({"name": "s", "runs": PAIR, **keys})


class Case(NamedTuple):
    """A rule, the keys of a system, and a part of its message; None = it finds nothing."""

    rule: str
    keys: dict[str, Any]
    message: str | None
    engine: str | None = None


BY_RULE: dict[str, list[tuple[Any, ...]]] = {
    "engine-cannot-express": [
        (
            {"fusion": {"method": "rrf_v2", "weights": {"question": 1}}},
            "OpenSearch does this only approximately: bonus: OpenSearch has none; it is left out",
            "opensearch",
        ),
        ({"fusion": "condorcet"}, "OpenSearch cannot do this", "opensearch"),
        ({"depth": 10, "top_k": 10}, None, "opensearch"),
        ({"fusion": "condorcet"}, None),
        ({"runs": ["bm25"], "fusion": "rrf"}, None, "opensearch"),
        ({"fusion": "pos_fuse"}, None, "opensearch"),
        (
            {"depth": 1, "top_k": 1, "fusion": {"method": "rrf", "k": 10.5}},
            "OpenSearch does this only approximately: k: 10 instead of 10.5",
            "opensearch",
        ),
        (
            {"fusion": {"method": "rrf", "normalize": "three_lists"}},
            "OpenSearch gives the same order with other scores",
            "opensearch",
        ),
    ],
    "bonus-dominates": [
        (
            {"fusion": {"method": "rrf_v2", "weights": {"question": 1}}},
            "1: 0.0664 to 0.0828; 2–3: 0.0359 to 0.0523; 4+: up to 0.0312",
        ),
        (
            {"fusion": {"method": "rrf_v2", "weights": {"bm25": 2, "dense": 2}}},
            "1: 0.0828 to 0.1156; 2–3: 0.0517 to 0.0845; 4+: up to 0.0625",
        ),
        # 4th in lists of weights 2, 2 and 1 scores .0781, first in the last one .0664
        ({"runs": ALL, "fusion": {"method": "rrf_v2", "weights": {"bm25": 2, "dense": 2}}}, None),
        (
            {"fusion": {"method": "rrf_v2", "bonus_scope": "question", "normalize": "three_lists"}},
            "the question's lists",
        ),
        ({"fusion": {"method": "rrf_v2", "bonus_scope": "per_source"}}, "1: "),
        ({"fusion": {"method": "rrf_v2"}, "depth": 3}, None),  # .0664, .0684
        (
            {"fusion": {"method": "rrf_v2", "weights": {"question": 1}}, "depth": 2},
            "best rank 2 at most",
        ),
        ({"fusion": {"method": "rrf_v2", "bonus": {1: 0.001}}}, None),
        ({"runs": ["dense"], "fusion": {"method": "rrf_v2"}}, None),
    ],
    "rank-immovable": [
        (
            {"blend": blend("position_aware", retrieval="reciprocal_rank")},
            "rank 1 scores at least 0.750, every lower rank at most 0.636 (rank 11)",
        ),
        ({"blend": blend("linear", beta=0.1, retrieval="reciprocal_rank")}, "ranks 1 to 2"),
        ({"blend": blend("linear", beta=0.5, retrieval="fused")}, None),
        ({"blend": blend("linear", beta=0.5, retrieval="reciprocal_rank")}, None),
        ({"blend": blend("linear", beta=0, retrieval="reciprocal_rank")}, None),
    ],
    "blend-not-monotone": [
        (
            {"blend": blend("position_aware", retrieval="reciprocal_rank", depth=40)},
            "rank 11 scores 0.636 and rank 2 0.625: 247 of 780 pairs",
        ),
        ({"blend": blend("position_aware")}, "0.700 and rank 3 0.625"),
        (
            {"blend": blend("position_aware", retrieval="fused_max_possible"), "depth": 20},
            "from 0.75 at rank 3 to 0.6 at rank 4",
        ),
        ({"blend": blend("position_aware", always_rerank=False, skip_limit=12)}, "at rank 3"),
        ({"blend": blend("position_aware", tiers={3: 0.4})}, None),
        ({"blend": blend("linear", beta=0.5)}, None),
    ],
    "rerank-swamps-retrieval": [
        (
            {"fusion": {"method": "rrf_v2"}, "blend": blend("position_aware")},
            "at most 0.0992: its weight of 75% at rank 1 makes at most 23% of the score",
        ),
        (
            {"blend": blend("linear", beta=0.7, always_rerank=False, skip_limit=5)},
            "a rerank lead of 0.014",
        ),
        ({"blend": blend("linear", beta=0.05)}, None),
        ({"blend": blend("linear")}, None),
        (
            {
                "fusion": {"method": "rrf", "normalize": "max_possible"},
                "blend": blend("linear", beta=0.7),
            },
            None,
        ),
    ],
    "retrieval-swamps-rerank": [
        (
            {"fusion": "weighted_score", "blend": blend("linear", beta=0.7)},
            "for bm25: a lead of 2.333",
        ),
        (
            {"fusion": "weighted_score", "blend": blend("position_aware", always_rerank=False)},
            "a lead of 0.333",
        ),
        ({"fusion": "comb_sum", "blend": blend("linear", beta=0.7)}, "for bm25: a lead of 2.333"),
        (
            {
                "fusion": {"method": "weighted_sum", "normalize": "none", "weights": {"bm25": 0.2}},
                "blend": blend("linear", beta=0.7),
            },
            "for bm25: a lead of 2.333",
        ),
        ({"runs": ["dense"], "fusion": "weighted_score", "blend": blend("linear", beta=0.7)}, None),
        ({"fusion": "convex", "blend": blend("linear", beta=0.7)}, None),
    ],
    "min-max-over-rrf": [
        ({"blend": blend("linear", beta=0.5, retrieval="fused_min_max")}, "0.0328 and 0.0323"),
        ({"fusion": "convex", "blend": blend("linear", beta=0.5, retrieval="fused_min_max")}, None),
        ({"blend": blend("linear", retrieval="fused_min_max")}, None),
    ],
    "three-lists-ceiling": [
        (
            {"runs": ALL, "fusion": {"method": "rrf", "weights": CONV, "normalize": "three_lists"}},
            "the weights sum to 1: no score exceeds 0.333",
        ),
        ({"runs": ALL, "fusion": {"method": "rrf", "normalize": "three_lists"}}, None),
    ],
    "min-relevance-drops": [
        (
            {
                "runs": ALL,
                "fusion": {"method": "rrf", "weights": CONV, "normalize": "three_lists"},
                "min_relevance": 0.3,
            },
            "at most 0.1167; one that all lists rank alike stays down to rank 7",
        ),
        ({"min_relevance": 0.3}, "ranks first scores 0.0328"),
        ({"min_relevance": 0.031}, "down to rank 4"),
        ({"min_relevance": 0.01}, None),
        ({"min_relevance": 0.3, "blend": blend("replace")}, None),
    ],
    "threshold-on-ranks": [
        (
            {"abstain": {"signal": "fused top", "above": 0.03}},
            "one value, 0.03279, for all queries whose lists agree on the first document",
        ),
        (
            {"abstain": {"signal": "fused top", "above": 0.05}},
            "none is greater, so 0.05 answers no query: write 'signal: top:bm25'",
        ),
        (
            {
                "abstain": {"signal": "fused top", "above": 0.01},
                "fusion": {"method": "rrf", "weights": {"bm25": 2}},
                "blend": blend("replace"),
            },
            "no list gives less than 0.01639, so 0.01 answers every query that has a result: "
            "write 'signal: rerank top'",
        ),
        (
            {"abstain": {"signal": "fused margin", "false_answers": 0.1}},
            "fused margin has one value, 0.0005288, for all queries whose lists agree on the first "
            "two documents",
        ),
        ({"abstain": {"signal": "fused top", "above": 0.9}, "fusion": "convex"}, "one value, 1,"),
        (  # the greatest score of borda depends on the number of candidates
            {"abstain": {"signal": "fused top", "above": 9}, "fusion": "borda"},
            "fused top has one value for all queries",
        ),
        ({"abstain": {"signal": "fused margin", "above": 0.1}, "fusion": "convex"}, None),
        ({"abstain": {"signal": "fused top", "above": 9}, "fusion": "comb_sum"}, None),
        ({"abstain": {"signal": "fused top", "above": 0.1}, "fusion": "prob_fuse"}, None),
        ({"abstain": {"signal": "top:bm25", "above": 9}}, None),
        (
            {
                "abstain": {"signal": "fused top", "above": 0.03},
                "weights_by_type": {"hybrid": {"bm25": 0.5, "dense": 0.5}},
            },
            None,
        ),
    ],
    "missing-skip-unasked": [
        (
            {"fusion": {"method": "weighted_score", "normalize": "min_max"}},
            "bm25 alone returns, scores 1.000 and is put above d2 with 0.944",
        ),
        (
            {"runs": ALL, "fusion": {"method": "weighted_score", "normalize": "z_score"}},
            "'missing: min'",
        ),
        ({"fusion": {"method": "weighted_score", "normalize": "min_max", "missing": "skip"}}, None),
        ({"fusion": "weighted_score"}, None),
        ({"fusion": "convex"}, None),
        ({"runs": ["dense"], "fusion": {"method": "weighted_score", "normalize": "min_max"}}, None),
    ],
    "missing-zero-negative": [
        (
            {"fusion": {"method": "weighted_score", "normalize": "z_score", "missing": "zero"}},
            "gives every score below its list's mean a negative value",
        ),
        ({"fusion": "comb_sum"}, "which dense may have"),
        (
            {"fusion": {"method": "weighted_sum", "normalize": "none", "weights": {"dense": 0.5}}},
            "falls 0.500 behind",
        ),
        ({"fusion": {"method": "weighted_sum", "normalize": "none", "missing": "min"}}, None),
        ({"fusion": "convex"}, None),
        ({"runs": ["dense"], "fusion": {"method": "weighted_score", "missing": "zero"}}, None),
    ],
    "weights-by-type-untyped": [
        (
            {"runs": ALL, "weights_by_type": "conv-03-05"},
            "made has no query types, and the parameters are by type (local, global, relationship)",
        ),
        (
            {"fusion": {"method": "rrf", "k": {"by_query_type": {"local": 10, "hybrid": 60}}}},
            "every query gets those of 'hybrid'",
        ),
        (
            {"fusion": {"method": "rrf", "k": {"by_intent": {"meta": 10, "default": 60}}}},
            "made has no intents, and the parameters are by intent (meta): every query gets those "
            "of 'default'",
        ),
        ({}, None),
    ],
    "weights-sum": [
        (
            {
                "fusion": {
                    "method": "rrf",
                    "weights": {"by_query_type": {"local": {"bm25": 0.3}, "hybrid": {"bm25": 1}}},
                }
            },
            "the weights sum to hybrid 2, local 1.3",
        ),
        (
            {"fusion": {"method": "rrf", "weights": {"dense": 3}, "normalize": "three_lists"}},
            "would score 1.333 and 1.312",
        ),
        ({"runs": ALL, "weights_by_type": "conv-03-05"}, None),
        ({"fusion": {"method": "rrf", "normalize": "three_lists"}}, None),
    ],
    "k-beyond-depth": [
        ({"fusion": {"method": "rrf", "k": 600}, "depth": 10}, "counts 98.5%"),
        ({"fusion": {"method": "rrf", "k": 1000}}, "100 is assumed"),
        ({"fusion": {"method": "rrf", "k": 60}, "depth": 10}, None),
        ({"runs": ["bm25"], "fusion": {"method": "rrf", "k": 1000}}, None),
    ],
    "no-effect": [
        (
            {"runs": ["bm25"], "fusion": {"method": "rrf", "weights": {"bm25": 2}}},
            "fusion.weights has no effect: bm25 is the only run",
        ),
        ({"runs": ["bm25"], "fusion": {"method": "rrf", "k": 5}}, "fusion.k has no"),
        (
            {"runs": ["bm25"], "fusion": {"method": "weighted_score", "missing": "min"}},
            "fusion.missing has no effect",
        ),
        (
            {"fusion": {"method": "rrf_v2", "bonus": {1: 0.05, 3: 0.02, 8: 0.01}}, "depth": 3},
            "no list is deeper than 3, so the bonus up to rank 8 is never given",
        ),
        (
            {"blend": blend("position_aware", depth=3)},
            "the tier up to rank 10 begins below the rerank depth 3",
        ),
        (
            {"blend": blend("position_aware", depth=10, rest=0.1)},
            "blend.rest has no effect: the tiers reach the rerank depth 10",
        ),
        ({"blend": blend("linear", beta=0)}, "ltr is paid for in vain"),
        (
            {"blend": blend("linear", beta=1, retrieval="fused_min_max")},
            "blend.retrieval has no effect",
        ),
        ({"blend": blend("replace", skip_limit=5)}, "always_rerank is true"),
        ({"blend": blend("replace", min_score=0.0)}, "are never below 0"),
        ({"min_relevance": 0.0}, "every fused score is above 0"),
        ({"fusion": {"method": "rrf", "k": 5}}, None),
        ({"runs": ["bm25"]}, None),
        # k decides how much the raw score weighs
        (
            {
                "runs": ["bm25"],
                "fusion": {"method": "rrf", "k": 5},
                "blend": blend("linear", beta=0.7),
            },
            None,
        ),
        ({"blend": blend("position_aware", depth=11, rest=0.1)}, None),
    ],
}
CASES = [Case(rule, *case) for rule, cases in BY_RULE.items() for case in cases]

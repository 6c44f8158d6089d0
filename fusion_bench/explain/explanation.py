"""Every term of a document's final score, and why one document stands above another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fusion_bench.blend import Fused, RerankBlend
from fusion_bench.config.query_types import type_of
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, score_keys
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.evaluation.scores import Ranking, fused_list, rank
from fusion_bench.experiment.system import System
from fusion_bench.explain.score_formulas import rerank_from, retrieval_from
from fusion_bench.explain.score_trace import Explanation, Mixed, Term, Trace
from fusion_bench.fuse import Parts

__all__ = ["explain", "unknown_query", "why"]

TIERS = {
    0: "ranked",
    1: "without a rerank score: below every scored candidate",
    2: "beyond the rerank depth: below every candidate",
    -1: "dropped",
}


def explain(
    system: System, runs: AlignedRuns, query: str, spaces: Mapping[str, ScoreSpace]
) -> Explanation:
    """Trace every candidate of a query.

    Args:
        system: The system.
        runs: All sources of the dataset.
        query: Id of the query.
        spaces: Score space of each rerank list.

    Raises:
        ConfigError: No such query among the judged ones.
    """
    if query not in runs.queries:
        raise ConfigError(unknown_query(query, runs))
    alone = runs.subset(np.array([name == query for name in runs.queries]))
    chosen = None
    if system.types is not None:
        chosen = type_of(alone.types[0], alone.confidences[0], system.types)
    plain = system.of_type(chosen or "")
    ranking = rank(plain, alone, spaces)
    fused = fused_list(plain, ranking.runs)
    parts = plain.fusion.parts(ranking.runs)
    mixed = _mixed(plain, ranking, fused, spaces)
    order = np.lexsort((ranking.placed, ranking.positions == 0))
    return Explanation(
        system=system.name,
        query=query,
        query_type=chosen,
        method=plain.fusion.method,
        ties=runs.ties,
        top_k=plain.top_k,
        traces=tuple(_trace(plain, ranking, fused, parts, mixed, int(n)) for n in order),
    )


def unknown_query(query: str, runs: AlignedRuns) -> str:
    """What to say of a query that is not judged."""
    hint = did_you_mean(query, runs.queries)
    return f"no query {query!r} among the {len(runs.queries):,} judged ones{hint}"


def _trace(
    system: System,
    ranking: Ranking,
    fused: Fused,
    parts: Parts,
    mixed: Mapping[int, Mixed],
    n: int,
) -> Trace:
    runs = ranking.runs
    weights = system.fusion.source_weights(runs.sources, runs.roles)
    terms = tuple(
        _term(runs, label, float(parts.terms[t, n]), parts.sources[t], weights, n)
        for t, label in enumerate(parts.labels)
    )
    clamped = fused.scores[n] != fused.deciding[n]
    return Trace(
        document=runs.vocabulary[runs.documents[n]],
        grade=int(runs.grades[n]) if runs.judged[n] else None,
        position=int(ranking.positions[n]) or None,
        placed=int(ranking.placed[n]) or None,
        score=float(ranking.scores[n]),
        tier=TIERS[int(ranking.tiers[n])],
        fused_rank=int(fused.positions[n]) or None,
        fused=float(fused.scores[n]),
        terms=terms,
        divisor=float(parts.divisor[n]),
        ceiling=float(fused.scores[n]) if clamped else None,
        mixed=mixed.get(n),
    )


def _term(
    runs: AlignedRuns, label: str, value: float, source: int | None, weights: FloatArray, n: int
) -> Term:
    if source is None:
        return Term(label, value)
    returned = bool(runs.ranks[source, n] > 0)
    return Term(
        label=label,
        value=value,
        source=runs.sources[source],
        roles=tuple(sorted(runs.roles[source])),
        rank=int(runs.ranks[source, n]) if returned else None,
        score=float(runs.scores[source, n]) if returned else None,
        weight=float(weights[source]),
    )


def _mixed(
    system: System, ranking: Ranking, fused: Fused, spaces: Mapping[str, ScoreSpace]
) -> dict[int, Mixed]:
    """The blend of every candidate that was blended."""
    blend = system.blend
    if not isinstance(blend, RerankBlend):
        return {}
    runs = ranking.runs
    candidates, unit, unscored = blend.scored(runs, fused, spaces)
    mix = blend.mix(runs, fused, candidates)
    raw = runs.rerank[runs.rerankers.index(blend.reranker)]
    space = spaces[blend.reranker]
    return {
        int(n): Mixed(
            reranker=blend.reranker,
            raw=None if np.isnan(raw[n]) else float(raw[n]),
            rerank=float(unit[n]),
            rerank_weight=None if mix is None else float(mix.rerank_weight[n]),
            retrieval=None if mix is None else float(mix.retrieval[n]),
            retrieval_weight=None if mix is None else float(mix.retrieval_weight[n]),
            rerank_from=rerank_from(space, raw[candidates], float(raw[n])),
            retrieval_from=""
            if mix is None
            else retrieval_from(getattr(blend, "retrieval", "fused"), fused, candidates, int(n)),
        )
        for n in np.flatnonzero(candidates & ~unscored)
    }


def why(above: Trace, below: Trace, ties: str) -> str:
    """Why one document stands above another, in one line.

    Args:
        above: The one that stands above.
        below: The other; of the same query and system.
        ties: The tie rule.
    """
    if below.placed is None and above.placed is not None:
        return f"{below.document} is not returned ({below.tier})"
    if above.tier != below.tier:
        return f"{above.document} is {above.tier}, {below.document} is {below.tier}"
    if score_keys(np.array([above.score]))[0] == score_keys(np.array([below.score]))[0]:
        return f"equal scores ({above.score:.6g}): {_tie(above, below, ties)}"
    first, second = above.contributions, below.contributions
    gaps = {
        label: first.get(label, 0.0) - second.get(label, 0.0)
        for label in dict.fromkeys([*first, *second])
    }
    label = max(gaps, key=lambda name: gaps[name])
    against = [f"{name} {gap:+.6g}" for name, gap in gaps.items() if gap < 0]
    words = f"{above.score:.6g} > {below.score:.6g}: mostly {label} ({gaps[label]:+.6g})"
    return f"{words}, in spite of {', '.join(against)}" if against else words


def _tie(above: Trace, below: Trace, ties: str) -> str:
    if above.mixed is None and below.mixed is None and above.ceiling is not None:
        first, second = (sum(t.fused_contributions.values()) for t in (above, below))
        if first > second:
            return f"both are cut there, and stood at {first:.6g} and {second:.6g} before"
    if ties == "trec":
        return f"the greater document id stands first ({above.document!r} > {below.document!r})"
    return "the one that a source named first stands first"

"""Why each document of one query has its rank: a trace that adds its score up again.

:attr:`ScoreTrace.recomputed_score` adds the terms up again; the tests require it to equal the score
to the last bit, for every method and blend.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fusion_bench.checks.dataset_facts import describe_selection, select_repeat
from fusion_bench.checks.records import DataWarning
from fusion_bench.config.query_types import BY_INTENT, BY_TYPE
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, score_keys
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, find_task_warnings, prepare_dataset
from fusion_bench.experiment.collapse import Collapse
from fusion_bench.experiment.experiment import Experiment, find_one_dataset
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.json_objects import query_excerpt
from fusion_bench.io.looks import record_shown
from fusion_bench.methods.blend import Fused, RerankBlend
from fusion_bench.methods.fuse import ScoreTerms, name_term
from fusion_bench.ranking import plain_systems
from fusion_bench.ranking.collapse import Chunk, list_chunks
from fusion_bench.ranking.query_signals import AnswerDecision, decide_answer, signal_of
from fusion_bench.ranking.system_ranking import SystemRanking, fused_list, rank_candidates
from fusion_bench.util.formatting import pluralize


@dataclass(frozen=True)
class ScoreTerm:
    """One term of the fused score.

    Attributes:
        label: The source, or the name of another term.
        value: The summand; 0 where it has no effect.
        source: The source it belongs to; None = no single one.
        roles: Roles of that source.
        rank: The document's rank in that source; None = not returned.
        score: Its raw score in that source; None = not returned.
        weight: The source's weight in the fusion.
    """

    label: str
    value: float
    source: str | None = None
    roles: tuple[str, ...] = ()
    rank: int | None = None
    score: float | None = None
    weight: float | None = None

    @property
    def name(self) -> str:
        """Label and source, once."""
        return name_term(self.label, self.source)


@dataclass(frozen=True)
class BlendTrace:
    """The blend of one candidate: retrieval_weight · retrieval + rerank_weight · rerank.

    Attributes:
        reranker: The rerank list.
        raw: The score in the list; None = the list lacks the document.
        rerank: The score on the unit scale.
        rerank_weight: Its weight.
        retrieval: The retrieval term.
        retrieval_weight: Its weight; both are None for a blend that is no such sum.
        rerank_from: How the rerank score came from the raw one, in words.
        retrieval_from: How the retrieval term came from the fused score or rank.
    """

    reranker: str
    raw: float | None
    rerank: float
    rerank_weight: float | None = None
    retrieval: float | None = None
    retrieval_weight: float | None = None
    rerank_formula: str = ""
    retrieval_formula: str = ""


@dataclass(frozen=True)
class ScoreTrace:
    """The score of one document of one query, by term.

    Attributes:
        document: Its id.
        grade: As judged; None = unjudged.
        rank: Final rank, from 1; None = not returned.
        rank_before_cut: Final rank before ``top_k`` cuts the list; None = dropped.
        score: Final score.
        tier: The part of the list it belongs to.
        fused_rank: Rank in the fused list; None = not in it.
        fused_score: Fused score, as shown and blended.
        terms: Terms of the fused score.
        divisor: Divisor of their sum.
        ceiling: Upper limit of the fused score; None = not limited.
        blend: The blend; None where the fused score is final.
        chunks: The chunks of its document, the one that stands for it first; empty = nothing is
            collapsed.
    """

    document: str
    grade: int | None
    rank: int | None
    rank_before_cut: int | None
    score: float
    tier: str
    fused_rank: int | None
    fused_score: float
    terms: tuple[ScoreTerm, ...]
    divisor: float
    ceiling: float | None
    blend: BlendTrace | None
    chunks: tuple[Chunk, ...] = ()

    @property
    def chunk(self) -> str:
        """The id that the lists before a collapse name it by."""
        names = [chunk.id for chunk in self.chunks]
        return self.document if self.document in names or not names else names[0]

    @property
    def recomputed_score(self) -> float:
        """The score, added up again from the terms."""
        if self.blend is not None:
            return sum(self.contributions.values())
        fused = self.fused_sort_score
        return fused if self.ceiling is None else min(fused, self.ceiling)

    @property
    def fused_sort_score(self) -> float:
        """The fused score before any limit, which decided the fused order."""
        return math.fsum(term.value for term in self.terms) / self.divisor

    @property
    def is_cut(self) -> bool:
        """Whether ``top_k`` alone keeps it out of the list."""
        return self.rank_before_cut is not None and self.rank is None

    @property
    def contributions(self) -> dict[str, float]:
        """Summands of the final score by label."""
        blend = self.blend
        if blend is None:
            return self.fused_contributions
        label = f"rerank {blend.reranker}"
        if blend.retrieval is None:
            return {label: self.score}
        retrieval = (blend.retrieval_weight or 0.0) * blend.retrieval
        return {"retrieval": retrieval, label: (blend.rerank_weight or 0.0) * blend.rerank}

    @property
    def fused_contributions(self) -> dict[str, float]:
        """Summands of the fused score by label."""
        sums: dict[str, float] = {}
        for term in self.terms:
            sums[term.name] = sums.get(term.name, 0.0) + term.value / self.divisor
        return sums


@dataclass(frozen=True)
class Explanation:
    """Every candidate of one query under one system.

    Attributes:
        system: Its name.
        query: Id of the query.
        query_type: The type whose weights were used; None = no weights by type.
        method: The fusion's name.
        ties: The tie rule that orders the fused list.
        top_k: Maximum length of the list; None = no limit.
        traces: Every candidate in the order of the final list, those not returned last.
        query_text: The beginning of the query's text; empty where the dataset has none.
        documents: JSON Lines with the texts of the documents; None where there is no such file.
        stages: The same query under each stage of the system.
        intent: The intent whose numbers were used; None = no numbers by intent.
        switched_off: Source that is off for the query → why.
        trial: Which trial of which lists this is; None = every list has one file.
        data_warnings: What speaks against the grades, the lists, and how the system reads them.
        decision: Whether the system answers the query; None = it has no threshold.
        collapse: How chunks are collapsed; None = they are not.
    """

    system: str
    query: str
    query_type: str | None
    method: str
    ties: str
    top_k: int | None
    traces: tuple[ScoreTrace, ...]
    query_text: str = ""
    documents: Path | None = None
    stages: tuple[Explanation, ...] = ()
    intent: str | None = None
    switched_off: Mapping[str, str] = field(default_factory=dict)
    trial: str | None = None
    data_warnings: tuple[DataWarning, ...] = ()
    decision: AnswerDecision | None = None
    collapse: Collapse | None = None

    def find_trace(self, document: str) -> ScoreTrace | None:
        """The trace of a document; None where no source returned it."""
        return next((trace for trace in self.traces if trace.document == document), None)

    def require_trace(self, document: str) -> ScoreTrace:
        """The trace of a document.

        Raises:
            ConfigError: No source returned the document.
        """
        trace = self.find_trace(document)
        if trace is None:
            raise ConfigError(
                f"no source in use returned document {document!r} for query {self.query!r} "
                f"({pluralize(len(self.traces), 'candidate')})"
            )
        return trace


TIERS = {
    0: "ranked",
    1: "without a rerank score: below every scored candidate",
    2: "beyond the rerank depth: below every candidate",
    -1: "dropped",
}


def explain_ranking(system: System, runs: AlignedRuns, query: str) -> Explanation:
    """Trace every candidate of a query.

    Args:
        system: The system.
        runs: All sources of the dataset.
        query: Id of the query.

    Raises:
        ConfigError: No such query among the judged ones.
    """
    if query not in runs.queries:
        raise ConfigError(_unknown_query_message(query, runs))
    fitted = plain_systems.fit_system(system, runs)
    plain, lists = plain_systems.plain_system_of(fitted, runs, query)
    alone = runs.subset(np.array(runs.queries) == query)
    chosen, key = None, system.class_key
    if key is not None and system.query_classes is not None:
        chosen = plain_systems.resolve_classes(alone, key, system.query_classes, system.types)[0]
    ranking = rank_candidates(plain, lists)
    chunks = list_chunks(lists, query)
    fused = fused_list(ranking.runs, plain.fusion)
    parts = plain.fusion.score_terms(ranking.runs)
    mixed = _trace_blends(plain, ranking, fused)
    order = np.lexsort((ranking.ranks_before_cut, ranking.positions == 0))
    known = alone.records[0] if alone.records else Query(alone.queries[0])
    return Explanation(
        system=system.name,
        query=query,
        query_type=chosen if key is BY_TYPE else None,
        intent=chosen if key is BY_INTENT else None,
        method=plain.fusion.method,
        ties=ranking.runs.ties,
        top_k=plain.top_k,
        traces=tuple(
            replace(trace, chunks=chunks.get(trace.document, ()))
            for trace in (
                _trace_document(plain, ranking, fused, parts, mixed, int(n)) for n in order
            )
        ),
        stages=tuple(
            explain_ranking(stage, alone, query) for stage in (plain.stages or {}).values()
        ),
        switched_off={
            name: switch.explain_off(known)
            for name, switch, off in zip(
                alone.sources, alone.switches, alone.off[:, 0], strict=False
            )
            if off and switch is not None and name in system.runs
        },
        collapse=system.collapse,
    )


def _unknown_query_message(query: str, runs: AlignedRuns) -> str:
    """The message for a query that is not judged, or in no list where nothing is judged."""
    hint = did_you_mean(query, runs.queries)
    kind = "judged ones" if runs.judged.any() else "of the dataset"
    return f"no query {query!r} among the {len(runs.queries):,} {kind}{hint}"


def _trace_document(
    system: System,
    ranking: SystemRanking,
    fused: Fused,
    parts: ScoreTerms,
    mixed: Mapping[int, BlendTrace],
    n: int,
) -> ScoreTrace:
    runs = ranking.runs
    weights = system.fusion.source_weights(runs.sources, runs.roles)
    labels = zip(parts.labels, parts.terms[:, n].tolist(), parts.sources, strict=True)
    terms = []
    for label, value, source in labels:
        if source is None:
            terms.append(ScoreTerm(label, value))
            continue
        returned = bool(runs.ranks[source, n] > 0)
        term = ScoreTerm(
            label=label,
            value=value,
            source=runs.sources[source],
            roles=tuple(sorted(runs.roles[source])),
            rank=int(runs.ranks[source, n]) if returned else None,
            score=float(runs.scores[source, n]) if returned else None,
            weight=float(weights[source]),
        )
        terms.append(term)
    clamped = fused.scores[n] != fused.sort_scores[n]
    return ScoreTrace(
        document=runs.vocabulary[runs.documents[n]],
        grade=int(runs.grades[n]) if runs.judged[n] else None,
        rank=int(ranking.positions[n]) or None,
        rank_before_cut=int(ranking.ranks_before_cut[n]) or None,
        score=float(ranking.scores[n]),
        tier=TIERS[int(ranking.tiers[n])],
        fused_rank=int(fused.positions[n]) or None,
        fused_score=float(fused.scores[n]),
        terms=tuple(terms),
        divisor=float(parts.divisor[n]),
        ceiling=float(fused.scores[n]) if clamped else None,
        blend=mixed.get(n),
    )


def _trace_blends(system: System, ranking: SystemRanking, fused: Fused) -> dict[int, BlendTrace]:
    """The blend of every candidate that was blended."""
    blend = system.blend
    if not isinstance(blend, RerankBlend):
        return {}
    runs = ranking.runs
    candidates, unit, unscored = blend.score_candidates(runs, fused, runs.spaces)
    mix = blend.blend_terms(runs, fused, candidates)
    reading = getattr(blend, "retrieval", "fused")
    raw = runs.rerank[runs.rerankers.index(blend.reranker)]
    space = runs.spaces[blend.reranker]
    traces = {}
    for n in np.flatnonzero(candidates & ~unscored).tolist():
        traces[n] = BlendTrace(
            reranker=blend.reranker,
            raw=None if np.isnan(raw[n]) else float(raw[n]),
            rerank=float(unit[n]),
            rerank_formula=rerank_formula(space, raw[candidates], float(raw[n])),
        )
        if mix is not None:
            traces[n] = replace(
                traces[n],
                rerank_weight=float(mix.rerank_weight[n]),
                retrieval=float(mix.retrieval[n]),
                retrieval_weight=float(mix.retrieval_weight[n]),
                retrieval_formula=retrieval_formula(reading, fused, candidates, n),
            )
    return traces


def rerank_formula(space: ScoreSpace, all_raw: FloatArray, raw: float) -> str:
    """The formula that maps a score of a rerank list to the unit scale.

    Args:
        space: What the list's scores mean.
        all_raw: Shape (n,): those of the query's candidates; NaN = none.
        raw: The document's own; NaN = none.
    """
    if np.isnan(raw):
        return "the list lacks it: 0"
    known = all_raw[~np.isnan(all_raw)]
    return {
        "unit": f"raw {raw:.6g}",
        "logit": f"sigmoid of raw {raw:.6g}",
        "log_prob": f"exp of raw {raw:.6g}",
        "unbounded": f"min-max: {_min_max(raw, known)}",
        "order": f"order: raw {raw:.6g} among {len(known)} candidates",
    }[space]


def retrieval_formula(reading: str, fused: Fused, candidates: NDArray[np.bool_], n: int) -> str:
    """The formula of the retrieval term, from the fused score or the fused rank.

    Args:
        reading: ``fused``, ``fused_max_possible``, ``fused_min_max`` or ``reciprocal_rank``.
        fused: The fused list of one query.
        candidates: Shape (N,): the documents that are blended.
        n: The document.
    """
    score = float(fused.scores[n])
    if reading == "reciprocal_rank":
        return f"{reading}: 1 / {fused.positions[n]}"
    if reading == "fused_min_max":
        return f"{reading}: {_min_max(score, fused.scores[candidates])}"
    if reading == "fused_max_possible":
        return f"{reading}: {score:.6g} / {float(fused.max_possible[0]):.6g}"
    return "the fused score"


def _min_max(value: float, known: FloatArray) -> str:
    low, high = float(known.min()), float(known.max())
    if low == high:
        return f"all candidates have {value:.6g}, which becomes 1"
    least = f"{low:.6g}" if low >= 0 else f"({low:.6g})"
    return f"({value:.6g} − {least}) / ({high:.6g} − {least})"


def format_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with four significant digits, or as many as it takes to tell them apart."""
    pairs = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (f"{first:.4g}", f"{second:.4g}"))


def explain_order(above: ScoreTrace, below: ScoreTrace, ties: str) -> str:
    """Why one document ranks above another, in one line.

    Args:
        above: The document with the better rank.
        below: The other document of the same query and system.
        ties: The tie rule.
    """
    if below.rank_before_cut is None and above.rank_before_cut is not None:
        return f"{below.document} is not returned ({below.tier})"
    if above.tier != below.tier:
        return f"{above.document} is {above.tier}, {below.document} is {below.tier}"
    if score_keys(np.array([above.score]))[0] == score_keys(np.array([below.score]))[0]:
        return f"equal scores ({above.score:.4g}): {_explain_tie(above, below, ties)}"
    first, second = above.contributions, below.contributions
    gaps = {
        label: first.get(label, 0.0) - second.get(label, 0.0)
        for label in dict.fromkeys([*first, *second])
    }
    label = max(gaps, key=lambda name: gaps[name])
    against = [f"{name} {gap:+.4g}" for name, gap in gaps.items() if gap < 0]
    scores = " > ".join(format_apart(above.score, below.score))
    words = f"{scores}: mostly {label} ({gaps[label]:+.4g})"
    return f"{words}, against {', '.join(against)}" if against else words


def _explain_tie(above: ScoreTrace, below: ScoreTrace, ties: str) -> str:
    first, second = above.fused_sort_score, below.fused_sort_score
    if len({*score_keys(np.array([first, second])).tolist()}) > 1:
        if above.blend is None and above.ceiling is not None:
            return f"both reach the limit; without it {' and '.join(format_apart(first, second))}"
        return f"the better fused rank ranks first ({above.fused_rank} and {below.fused_rank})"
    if ties == "trec":
        return f"the greater document id ranks first ({above.document!r} > {below.document!r})"
    return "the document that a source returned first ranks first"


def explain_query(
    experiment: Experiment,
    source: Source,
    query: str,
    *,
    system: str | None = None,
    dataset: str | None = None,
    folders: Collection[Path],
    trial: int = 1,
    document: str | None = None,
    against: str | None = None,
) -> Explanation:
    """Explain a query of any split under one system of an experiment.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        query: Id of the query.
        system: Name of the system; by default the gated one, or the experiment's baseline.
        dataset: As the experiment names it; by default its only one, or its first.
        folders: Where named datasets live.
        trial: Which file of each list that has several.
        document: A document that some source must have returned; None = any.
        against: Another one, likewise.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, or a name is unknown.
    """
    name = dataset or experiment.dataset_names[0]
    file = find_one_dataset(experiment, source, name, folders)
    if system is None:
        gated = experiment.gated_system if experiment.gate is not None else None
        chosen = gated or experiment.systems[experiment.baseline]
    else:
        chosen = experiment.find_system(system)
    spec, _ = read_spec(file)
    changed = {"systems": {chosen.name: chosen}, **ALL_JUDGED}
    alone = experiment.model_copy(update=changed)
    alone.check_datasets(spec.run_roles, spec.rerank, source)
    every = load_dataset(
        file,
        runs=chosen.base_runs,
        rerankers=chosen.reranker_names,
        merged=merge_rules([chosen]),
        every_query=False
        if plain_systems.needs_fitting(chosen)
        else None,  # what is trained needs judgments
    )
    loaded = select_repeat(every, trial)
    task = prepare_dataset(alone, source, loaded, is_shown=False)
    if query not in task.runs.queries:
        raise ConfigError(
            f"{source.path}: dataset {loaded.name!r}: {_unknown_query_message(query, task.runs)}: "
            "name another experiment"
        )
    fitted, decision = task.fit_system(chosen), None
    if (abstain := chosen.abstain) is not None and abstain.above is not None:
        values = signal_of(fitted, task.runs, abstain.signal)
        decision = decide_answer(abstain, chosen.name, values, task.runs.queries.index(query))
    explanation = explain_ranking(fitted, task.runs, query)
    for name in filter(None, (document, against)):
        explanation.require_trace(name)
    explanation = replace(
        explanation,
        query_text=query_excerpt(loaded.queries.get(query)),
        documents=loaded.documents,
        trial=describe_selection(every, trial),
        data_warnings=tuple(find_task_warnings(task, [chosen]) if loaded.is_judged else ()),
        decision=decision,
    )
    record_shown(loaded.folder, loaded.qrels, [query])  # last: a refused command shows no value
    return explanation

"""CRAG: the evidence of each list, its verdict, what refined queries change.

At ``upper`` or above it is ``correct``, at ``lower`` or below ``incorrect``, between them
``ambiguous``. Source: Yan, Gu, Zhu and Ling 2024, "Corrective Retrieval Augmented Generation"; the
0.7 and 0.3 and both ends are those of CONV-03-05 (BR-016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from numbers import Real
from typing import Final, Literal, get_args

import numpy as np

from fusion_bench.config.models import CORRECT_FROM, INCORRECT_TO
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation.prepared_dataset import EvaluationSet
from fusion_bench.evaluation.report_records import CragResult, RefinedResult, VerdictCount
from fusion_bench.experiment.settings import CragRule, CragSettings, Verdict
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.methods.blend import on_unit_scale
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.ranking.query_signals import greatest_by_query
from fusion_bench.ranking.system_ranking import rank_candidates
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import clopper_pearson
from fusion_bench.stats.values import Pair

#: Score spaces in which a score means the same for every query.
ABSOLUTE = ("unit", "logit", "log_prob")


@dataclass(frozen=True, eq=False)
class ListEvidence:
    """The best score of Q lists of one kind, and whether they have a relevant document.

    Attributes:
        name: Name of the system, or of the rerank list.
        kind: ``system`` = its final lists; ``list`` = the rerank list in its own order.
        reranker: The rerank list whose scores count.
        scores: Shape (Q,): the best score in the top of the list, on the unit scale; NaN = none.
        relevant: Shape (Q,): whether a document in the top of the list is relevant.
    """

    name: str
    kind: Literal["system", "list"]
    reranker: str
    scores: FloatArray
    relevant: BoolArray


def absolute_rerankers(spaces: Mapping[str, ScoreSpace]) -> list[str]:
    """The rerank lists whose scores mean the same for every query."""
    return [name for name, space in spaces.items() if space in ABSOLUTE]


def require_absolute(dataset: str, spaces: Mapping[str, ScoreSpace]) -> list[str]:
    """:func:`absolute_rerankers`, at least one.

    Raises:
        ConfigError: There is none.
    """
    names = absolute_rerankers(spaces)
    if not names:
        given = ", ".join(f"{name!r} is {space}" for name, space in spaces.items())
        raise ConfigError(
            f"crag: {dataset} has no rerank list of score space {', '.join(ABSOLUTE)}, in which a "
            f"score means the same for every query ({given or 'it has no rerank list'}): add one, "
            "or remove 'crag'"
        )
    return names


def system_evidence(system: System, runs: AlignedRuns, rule: CragRule) -> ListEvidence | None:
    """The evidence on a system's final lists; None where a query has no list with absolute scores.

    Args:
        system: Any system. Where a query type has no blend, the list of its own blend counts.
        runs: Aligned, Q queries.
        rule: Which documents count, and which are relevant.
    """
    spaces, parts = runs.spaces, list(plain_systems(fit_system(system, runs), runs))
    names = [plain.blend.reranker_name or system.blend.reranker_name for _, plain, _ in parts]
    if any(name is None or spaces.get(name) not in ABSOLUTE for name in names):
        return None
    scores = np.full(len(runs.queries), np.nan)
    relevant = np.zeros(len(runs.queries), dtype=bool)
    used = [name for name in names if name is not None]
    for (index, plain, part), name in zip(parts, used, strict=True):
        ranking = rank_candidates(plain, part)
        inside = (ranking.positions >= 1) & (ranking.positions <= rule.top)
        best = _best_scores(ranking.runs, name, inside, spaces[name], rule.grade)
        scores[index], relevant[index] = best
    return ListEvidence(system.name, "system", ", ".join(sorted(set(used))), scores, relevant)


def list_evidence(
    dataset: Dataset, name: str, queries: tuple[str, ...], rule: CragRule
) -> ListEvidence:
    """The evidence on a rerank list by itself, in the order of its scores.

    Args:
        dataset: With the list.
        name: Of the rerank list.
        queries: The Q queries, in the order of the judgments.
        rule: Which documents count, and which are relevant.
    """
    runs = _list_runs(dataset, name, queries)
    inside = (runs.ranks[0] >= 1) & (runs.ranks[0] <= rule.top)
    space = dataset.spaces[name]
    scores, relevant = _best_scores(runs, name, inside, space, rule.grade)
    return ListEvidence(name, "list", name, scores, relevant)


def _list_runs(dataset: Dataset, name: str, queries: Sequence[str]) -> AlignedRuns:
    """A rerank list as the only source, and as the only rerank list.

    Args:
        dataset: With the list.
        name: Of the rerank list.
        queries: The queries to keep, in the order of the judgments.
    """
    run, kept = dataset.rerankers[name], set(queries)
    runs = align(dataset.qrels, [run], rerankers=[run], queries=dataset.queries)
    return runs.subset(np.array([query in kept for query in runs.queries]))


def _best_scores(
    view: AlignedRuns, reranker: str, inside: BoolArray, space: ScoreSpace, grade: int
) -> tuple[FloatArray, BoolArray]:
    """(Q,) best scores, NaN = nothing scored, and (Q,) whether anything inside is relevant."""
    unit = on_unit_scale(view, view.rerankers.index(reranker), inside, space)
    best = greatest_by_query(np.where(inside, unit, np.nan), view.query_index, len(view.queries))
    good = view.query_index[inside & (view.grades >= grade)]
    relevant = np.bincount(good, minlength=len(view.queries)) > 0
    return best, relevant


#: The verdicts, from the best on.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


#: How far from 0 to 1 a fitted threshold may lie.
OUTSIDE: Final = 0.01


@dataclass(frozen=True)
class CragThresholds:
    """Where the verdict changes; ``lower`` is at most ``upper``.

    Fitted thresholds may lie just outside 0 to 1: then every score is on one side of them.

    Raises:
        ConfigError: NaN, out of range, or ``lower`` above ``upper``.
    """

    upper: float = CORRECT_FROM
    lower: float = INCORRECT_TO

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise ConfigError(
                f"thresholds: numbers are needed, given upper {self.upper:g} and lower "
                f"{self.lower:g}"
            )
        for name, value in vars(self).items():
            if not -OUTSIDE <= value <= 1 + OUTSIDE:
                raise ConfigError(f"thresholds: {name} {value:g} is outside [0, 1], as no score is")
        if self.lower > self.upper:
            raise ConfigError(
                f"thresholds: lower {self.lower:g} is above upper {self.upper:g}: swap them"
            )


DEFAULT_THRESHOLDS = CragThresholds()


@dataclass(frozen=True)
class CragVerdict:
    """What is said of one list; the fields of CONV-03-05's ``CRAGScore``.

    Attributes:
        relevance: ``correct``, ``ambiguous`` or ``incorrect``.
        confidence: The best score, in [0, 1]; 0 where the list has none.
        needs_web_search: True unless the verdict is ``correct`` (BR-017).
        refined_query: What to search instead; None where nothing needs to be searched.
    """

    relevance: Verdict
    confidence: float
    needs_web_search: bool
    refined_query: str | None = None


def judge_list(
    scores: Sequence[float],
    thresholds: CragThresholds = DEFAULT_THRESHOLDS,
    *,
    top: int = 10,
    refined_query: str | None = None,
) -> CragVerdict:
    """The verdict on one list.

    Args:
        scores: Rerank scores in [0, 1], in the order of the list; NaN = not scored.
        thresholds: Where the verdict changes.
        top: So many documents of the list count.
        refined_query: A better query, where one is known.

    Raises:
        ConfigError: A score that is no number, or a score or a threshold outside [0, 1].
    """
    for name, value in vars(thresholds).items():
        if not 0 <= value <= 1:
            raise ConfigError(f"thresholds: {name} {value:g} is outside [0, 1], as no score is")
    given: Sequence[object] = scores[:top]
    for score in given:
        if isinstance(score, bool) or not isinstance(score, Real):
            raise ConfigError(f"scores: numbers are needed, given {score!r}: NaN = not scored")
    known = [score for score in scores[:top] if not math.isnan(score)]
    for score in known:
        if not 0 <= score <= 1:
            raise ConfigError(f"scores: {score:g} is outside [0, 1]: bring it to the unit scale")
    best = max(known, default=0.0)
    verdict = name_verdicts(np.array([best]), thresholds)[0]
    needs_search = needs_web_search(verdict)
    return CragVerdict(verdict, best, needs_search, refined_query if needs_search else None)


def needs_web_search(verdict: Verdict) -> bool:
    """Whether a search of the web is recommended after a verdict (BR-017)."""
    return verdict != "correct"


def classify_scores(scores: FloatArray, thresholds: CragThresholds) -> dict[Verdict, BoolArray]:
    """(Q,) by verdict: the queries that have it; one without any score (NaN) is ``incorrect``.

    A score that is both at ``upper`` and at ``lower`` is ``correct``.
    """
    correct = scores >= thresholds.upper
    ambiguous = ~correct & (scores > thresholds.lower)
    return {"correct": correct, "ambiguous": ambiguous, "incorrect": ~(correct | ambiguous)}


def name_verdicts(scores: FloatArray, thresholds: CragThresholds) -> list[Verdict]:
    """The verdict of each of Q queries, by name."""
    masks = classify_scores(scores, thresholds)
    codes = np.argmax([masks[verdict] for verdict in VERDICTS], axis=0)
    return [VERDICTS[code] for code in codes.tolist()]


#: What ranks some queries over the lists of a dataset: their evidence, and the primary measure.
RankQueries = Callable[[Dataset, tuple[str, ...]], tuple[ListEvidence | None, FloatArray]]


def judge_lists(task: EvaluationSet, values: Mapping[str, FloatArray]) -> tuple[CragResult, ...]:
    """The verdicts on the systems' lists, then on each rerank list by itself.

    Args:
        task: With every rerank list that has absolute scores, and the refined lists.
        values: System → the primary measure by query, shape (Q,), on the first repeat.

    Returns:
        One result a list; empty where the experiment has no ``crag``.

    Raises:
        ConfigError: No rerank list has absolute scores, or one has none for refined queries.
    """
    crag, dataset = task.experiment.crag, task.dataset
    if crag is None:
        return ()
    results = []
    for name, system in task.experiment.systems.items():
        fitted = task.fit_system(system)
        evidence = system_evidence(fitted, task.runs, crag)
        if evidence is not None:
            lists = {*fitted.base_runs, *fitted.reranker_names}
            again = partial(_rank_system, task, fitted, crag)
            refined = _replay(task, crag, evidence, values[name], lists, again)
            results.append(_build_result(evidence, crag, refined))
    for name in require_absolute(dataset.name, {n: dataset.spaces[n] for n in dataset.rerankers}):
        rank_list = partial(_rank_list, task, name, crag)
        evidence, of_list = rank_list(dataset, task.runs.queries)
        refined = _replay(task, crag, evidence, of_list, {name}, rank_list)
        results.append(_build_result(evidence, crag, refined))
    return tuple(results)


def _rank_system(
    task: EvaluationSet,
    system: System,
    crag: CragSettings,
    dataset: Dataset,
    queries: tuple[str, ...],
) -> tuple[ListEvidence | None, FloatArray]:
    """A fitted system on these queries, with the lists of a dataset."""
    aligned = dataset.aligned(task.runs.sources, ties=task.experiment.ties)
    asked = set(queries)
    runs = aligned.subset(np.array([query in asked for query in aligned.queries]))
    evidence = system_evidence(system, runs, crag)
    return evidence, _primary_values(task, system, runs)


def _rank_list(
    task: EvaluationSet, name: str, crag: CragSettings, dataset: Dataset, queries: tuple[str, ...]
) -> tuple[ListEvidence, FloatArray]:
    """A rerank list in its own order on these queries."""
    alone, runs = System(name=name, runs=(name,)), _list_runs(dataset, name, queries)
    evidence = list_evidence(dataset, name, queries, crag)
    return evidence, _primary_values(task, alone, runs)


def _primary_values(task: EvaluationSet, system: System, runs: AlignedRuns) -> FloatArray:
    [scores] = evaluate_systems([system], runs, task.measures[:1])
    values: FloatArray = scores.values[0]
    return values


def _replay(
    task: EvaluationSet,
    crag: CragSettings,
    evidence: ListEvidence,
    values: FloatArray,
    lists: set[str],
    rank_again: RankQueries,
) -> RefinedResult | None:
    """What the refined queries change where their verdict asks for one.

    Args:
        task: With the refined lists.
        crag: Thresholds, and the verdicts that ask for a refined query.
        evidence: On the lists of the original queries, Q queries.
        values: Shape (Q,): the primary measure of these.
        lists: The lists that are read.
        rank_again: Ranks over the lists of the refined queries.

    Returns:
        None where no query has refined lists and such a verdict.

    Raises:
        ConfigError: A list that is needed has nothing for a refined query.
    """
    refined, queries = task.dataset.refined, task.runs.queries
    if refined is None:
        return None
    thresholds = CragThresholds(crag.upper, crag.lower)
    masks = classify_scores(evidence.scores, thresholds)
    known = _refined_queries(refined, lists)
    keep = np.array([query in known for query in queries])
    keep &= np.any([masks[verdict] for verdict in crag.refine], axis=0)
    if not keep.any():
        return None
    chosen = tuple(queries[q] for q in np.flatnonzero(keep))
    try:
        after, new = rank_again(refined, chosen)
    except (AlignmentError, ConfigError) as error:
        raise ConfigError(f"crag: the lists of refined queries: {error}") from None
    if after is None:
        raise AssertionError("a system reads the same rerank lists for refined queries")
    old = values[keep]
    keys = [*compress(task.runs.groups, keep.tolist())]
    pair = Pair.from_arrays(new, old, keys, is_bounded=task.measures[0].is_bounded)
    change = pair.estimate(task.experiment.alpha)
    whole = values.copy()
    whole[keep] = new
    return RefinedResult(
        queries=chosen,
        measure=task.measures[0].name,
        before=float(old.mean()),
        after=float(new.mean()),
        difference=change.mean,
        low=change.low,
        high=change.high,
        mean_before=float(values.mean()),
        mean_after=float(whole.mean()),
        verdicts=tuple(name_verdicts(after.scores, thresholds)),
        relevant_before=int(evidence.relevant[keep].sum()),
        relevant_after=int(after.relevant.sum()),
    )


def _refined_queries(refined: Dataset, lists: set[str]) -> set[str]:
    """The queries for which one of these lists has something for the refined query."""
    spec = refined.spec
    tables = [
        *(run for name, run in refined.runs.items() if spec.runs[name].refined is not None),
        *(run for name, run in refined.rerankers.items() if spec.rerank[name].refined is not None),
    ]
    return {query for run in tables if run.name in lists for query in run.queries}


def _build_result(
    evidence: ListEvidence, crag: CragSettings, refined: RefinedResult | None
) -> CragResult:
    thresholds = CragThresholds(crag.upper, crag.lower)
    masks = classify_scores(evidence.scores, thresholds)
    verdicts = name_verdicts(evidence.scores, thresholds)
    counts = {each: _count_verdict(each, masks[each], evidence.relevant) for each in VERDICTS}
    return CragResult(
        name=evidence.name,
        kind=evidence.kind,
        reranker=evidence.reranker,
        **crag.model_dump(include={"top", "grade", "upper", "lower"}),
        scores=tuple(evidence.scores.tolist()),
        verdicts=tuple(verdicts),
        correct=counts["correct"],
        ambiguous=counts["ambiguous"],
        incorrect=counts["incorrect"],
        needs_web_search=sum(map(needs_web_search, verdicts)),
        refined=refined,
    )


def _count_verdict(verdict: Verdict, mask: BoolArray, relevant: BoolArray) -> VerdictCount:
    queries, with_relevant = int(mask.sum()), int((mask & relevant).sum())
    count = VerdictCount(queries=queries, share=float(np.mean(mask)), relevant=with_relevant)
    if verdict == "ambiguous" or not queries:
        return count
    right = with_relevant if verdict == "correct" else queries - with_relevant
    low, high = clopper_pearson(right, queries)
    return count.model_copy(update={"precision": right / queries, "low": low, "high": high})

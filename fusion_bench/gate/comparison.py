"""A candidate compared with the stored values of a baseline, of its anchor; what lost most.

Each of many changes in a row may pass and lose a little. Each update of the baseline would then
start from the lower values. The anchor keeps those of the first baseline, until someone blesses new
ones with a reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import isclose

import numpy as np

from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.checks.records import NearDuplicates
from fusion_bench.data.ordering import NOISE
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.answered_queries import (
    NO_UNANSWERABLE,
    count_calibrating,
    find_queries,
)
from fusion_bench.evaluation.explanation import Explanation, ScoreTrace, explain_ranking
from fusion_bench.evaluation.prepared_dataset import EvaluationSet, add_unjudged_queries
from fusion_bench.experiment.settings import GatePolicy, Guard
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline import (
    Baseline,
    CollectionBaseline,
    DocumentChange,
    ListChange,
    QueryRegression,
)
from fusion_bench.gate.checks import Check, ComparedCollection, build_checks, make_table, run_checks
from fusion_bench.gate.comparability import find_changes, find_incompatibilities
from fusion_bench.gate.inputs import GateInputs, describe_collection
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.verdict import (
    ACCEPTED,
    CheckResult,
    CheckStatus,
    FalseAnswersResult,
    GoldenResult,
    GuardResult,
    QueryCheck,
    decide_false_answers,
)
from fusion_bench.io.held_out import HeldOut
from fusion_bench.io.json_objects import query_excerpt, read_titles
from fusion_bench.ranking.plain_systems import fit_repeats
from fusion_bench.ranking.query_signals import signal_of
from fusion_bench.stats.intervals import ALPHA

#: Relevant documents of one query in the verdict, by their best rank before or after.
MAX_DOCUMENTS = 20
#: A smaller relative change of a term is float noise.
MIN_CHANGE = 1e-9
#: Terms that explain why a document moved.
MAX_TERMS = 3


def require_abstain(inputs: GateInputs, committed: Baseline | None = None) -> None:
    """Refuse a candidate that answers every query, if that cannot be compared or checked.

    Args:
        inputs: The experiment.
        committed: The baseline; None = it is written anew.

    Raises:
        ConfigError: It has no threshold, and the baseline has one, or a check needs one.
    """
    candidate, policy = inputs.candidate, inputs.policy
    if candidate.abstain is not None:
        candidate.abstain.find_threshold(candidate.name)
        return
    where = inputs.source.where(("systems", candidate.name))
    remedy = "write the threshold that 'fusion-bench threshold EXPERIMENT --save FILE' finds"
    if policy.answered is not None or policy.false_answers is not None:
        raise ConfigError(
            f"{where}: no 'abstain', which gate.checks needs for 'answered' and 'false answers': "
            f"{remedy}, or remove these checks"
        )
    if committed is not None and committed.config.get("abstain") is not None:
        raise ConfigError(
            f"{where}: no 'abstain', which the baseline has: {remedy}, or accept that every query "
            "is answered with --update --reason"
        )


def check_false_answers(
    inputs: GateInputs, collections: Sequence[EvaluationSet]
) -> Iterator[FalseAnswersResult]:
    """The share of unanswerable queries that the candidate answers, on each collection.

    Args:
        inputs: The experiment, and where its data is.
        collections: The loaded datasets, of judged queries.

    Raises:
        FusionBenchError: No query is known to have no answer, or they are those that set the
            threshold, or the signal is NaN for every query.
    """
    policy, candidate = inputs.policy, inputs.candidate
    if policy.false_answers is None or candidate.abstain is None:
        return
    abstain = candidate.abstain
    for task in collections:
        name, every = task.dataset.name, add_unjudged_queries(task)
        queries = find_queries(every)
        if queries.answerable.all():
            raise ConfigError(f"{name}: gate.checks.false answers: {NO_UNANSWERABLE}")
        if count := count_calibrating(every, queries, abstain.calibrated_on):
            raise ConfigError(
                f"{name}: gate.checks.false answers: {count:,} of these "
                f"{(~queries.answerable).sum():,} unanswerable queries set the threshold of "
                f"{candidate.name!r}, so they cannot check it: set the threshold on others, such "
                "as a split of their own (fusion-bench threshold EXPERIMENT --set split=dev)"
            )
        values = signal_of(every.fit_system(candidate), queries.runs, abstain.signal)
        if np.isnan(values).all():
            raise ConfigError(f"{name}: {abstain.signal} of {candidate.name!r} is always NaN")
        units = values[queries.calibrates]
        yield decide_false_answers(
            name,
            int((units > abstain.find_threshold(candidate.name)).sum()),
            len(units),
            policy.false_answers.max,
            ALPHA / policy.runs,
        )


def _find_worst_queries(
    compared: ComparedCollection, systems: tuple[System | None, System], *, count: int
) -> Iterator[QueryRegression]:
    """The queries of a collection that lost most in the policy's first measure.

    Of several repeats the ranks are those of the repeat in which a query lost most.

    Args:
        compared: The values of both sides.
        systems: The baseline's system, None where its lists are gone, and the candidate.
        count: Maximum number of queries.
    """
    task, known = compared.task, compared.table.systems["baseline"]
    measure = next((each.name for each in task.measures if each.name in known), None)
    if measure is None:
        return
    pair = compared.pair(measure)
    before, after, repeats = pair.baseline, pair.candidate, pair.candidate.repeats
    order = np.argsort(pair.difference, kind="stable")[:count].tolist()
    worst = [q for q in order if pair.difference[q] < 0]
    chosen = dict.fromkeys(worst, 0)
    if repeats is not None:
        paired = before.repeats if pair.is_paired else None
        lost = repeats if paired is None else repeats - paired
        chosen = {q: int(np.argmin(lost[:, q])) for q in worst}
    rankings = {
        q: _explain_both(task, repeat, task.runs.queries[q], systems)
        for q, repeat in chosen.items()
    }
    grades = task.dataset.qrels.to_dict() if worst else {}
    relevance = task.dataset.spec.binary_relevance
    changes = {}
    for q in worst:
        judged = grades[task.runs.queries[q]]
        relevant = {name: grade for name, grade in judged.items() if grade >= relevance}
        changes[q] = _compare_documents(relevant, *rankings[q])
    titles = read_titles(
        task.dataset.documents, {change.document for q in worst for change in changes[q]}
    )
    for q in worst:
        query = task.runs.queries[q]
        old, new = rankings[q]
        yield QueryRegression(
            collection=task.dataset.name,
            query=query,
            text=query_excerpt(task.dataset.queries.get(query)),
            measure=pair.measure,
            value_before=float(before.values[q]),
            value_after=float(after.values[q]),
            top_k=(old and old.top_k, new.top_k),
            has_old_ranks=old is not None,
            trial=None if repeats is None else chosen[q] + 1,
            documents=tuple(
                change.model_copy(update={"title": titles.get(change.document, "")})
                for change in changes[q]
            ),
        )


def _explain_both(
    task: EvaluationSet, repeat: int, query: str, systems: tuple[System | None, System]
) -> tuple[Explanation | None, Explanation]:
    """A query under the baseline's system, if that can run, and under the candidate."""
    runs, (before, after) = task.runs.repeats[repeat], systems

    def explain(system: System) -> Explanation:
        return explain_ranking(task.fit_system(system, repeat), runs, query)

    return None if before is None else explain(before), explain(after)


def _compare_documents(
    relevant: Mapping[str, int], old: Explanation | None, new: Explanation
) -> list[DocumentChange]:
    """The relevant documents of a query, with their grades: first those that moved."""
    changes = []
    for document, grade in relevant.items():
        before, after = old and old.find_trace(document), new.find_trace(document)
        changes.append(
            DocumentChange(
                document=document,
                grade=grade,
                rank_before=before and before.rank,
                rank_after=after and after.rank,
                cut_rank_before=before.rank_before_cut if before and before.is_cut else None,
                cut_rank_after=after.rank_before_cut if after and after.is_cut else None,
                cause="" if old is None else explain_move(document, old, new),
            )
        )
    return sorted(changes, key=_sort_key)[:MAX_DOCUMENTS]


def _sort_key(change: DocumentChange) -> tuple[bool, float, str]:
    """First the documents that moved, by their best rank before or after."""
    ranks = [rank for rank in (change.rank_before, change.rank_after) if rank]
    return not change.is_moved, min(ranks, default=np.inf), change.document


def explain_move(document: str, old: Explanation, new: Explanation) -> str:
    """Why a document moved between two rankings of one query: the terms of its score that changed.

    If none of them changed, the document that passed it is named with its terms. Ranks are those
    before ``top_k`` cuts the list.

    Args:
        document: Its id.
        old: The query under the baseline.
        new: The query under the candidate.
    """
    before, after = old.find_trace(document), new.find_trace(document)
    if before is None:
        return "no source returns it" if after is None else "no source in use returned it before"
    if after is None:
        return "no source in use returns it now"
    if before.rank == after.rank and before.rank_before_cut == after.rank_before_cut:
        return "same rank"
    if after.is_cut and _rank_or_inf(after) <= _rank_or_inf(before):
        limits = (str(side.top_k or "none") for side in (old, new))
        return f"top_k {' → '.join(limits)}; its terms did not lower it"
    if before.tier != after.tier:
        return f"now {after.tier} (was {before.tier})"
    return _describe_changes(before, after) or _find_overtaker(after, old, new)


def _find_overtaker(after: ScoreTrace, old: Explanation, new: Explanation) -> str:
    """The document that passed this one, and its terms that changed."""
    for trace in reversed(new.traces):
        rank, before = _rank_or_inf(trace), old.find_trace(trace.document)
        if rank < min(_rank_or_inf(after), _rank_or_inf(before)):
            if before is None:
                return f"its terms did not change; {trace.document} is new above it"
            changes = _describe_changes(before, trace)
            if changes:
                return f"its terms did not change; {trace.document} passed it: {changes}"
    return "its terms did not change; other documents moved"


def _rank_or_inf(trace: ScoreTrace | None) -> float:
    return np.inf if trace is None or trace.rank_before_cut is None else trace.rank_before_cut


def _describe_changes(before: ScoreTrace, after: ScoreTrace) -> str:
    """The terms that changed most, the largest change first; empty where none changed."""
    old, new = before.contributions, after.contributions
    if before.blend is not None and after.blend is not None:
        old = {"fused rank": before.fused_rank or np.inf, **old, **before.fused_contributions}
        new = {"fused rank": after.fused_rank or np.inf, **new, **after.fused_contributions}
    gaps = {
        label: abs(new.get(label, 0.0) - old.get(label, 0.0))
        for label in dict.fromkeys([*old, *new])
        if not isclose(old.get(label, 0.0), new.get(label, 0.0), rel_tol=MIN_CHANGE)
    }
    return ", ".join(
        f"{label} {_format_value(old.get(label))} → {_format_value(new.get(label))}"
        for label in sorted(gaps, key=lambda name: -gaps[name])[:MAX_TERMS]
    )


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def find_anchor_breaks(
    previous: Baseline,
    ties: str,
    collections: Iterable[CollectionBaseline],
    held_out: Mapping[str, HeldOut],
) -> Iterator[str]:
    """Why new values cannot be compared with the anchor: other queries, judgments, definitions.

    New collections and new measures have no values to compare with; they are no reason.
    """
    known, common = previous.by_collection, []
    for record in collections:
        old = known.get(record.collection)
        if old is not None:
            names = record.definitions.keys() & old.definitions.keys()
            definitions = {name: record.definitions[name] for name in names}
            common.append(record.model_copy(update={"definitions": definitions}))
    kept = previous.model_copy(
        update={"collections": tuple(known[record.collection] for record in common)}
    )
    return find_incompatibilities(kept, ties, common, held_out)


def compare_records(
    task: EvaluationSet,
    new: CollectionBaseline,
    references: Mapping[str, CollectionBaseline],
    max_drops: Mapping[tuple[str | None, str], float],
) -> ComparedCollection:
    """The values of the candidate's record beside those of the baseline, of its anchor.

    Args:
        task: The collection.
        new: The candidate's record.
        references: The records that it is compared with: ``baseline``, ``anchor`` or both.
        max_drops: By slice and measure, what ``max_drop: auto`` stands for.
    """
    records = {"candidate": new, **dict(references)}
    systems = {name: record.measured_values(new.queries) for name, record in records.items()}
    borrowing = {
        name
        for name, old in references.items()
        for part in old.lists.keys() & new.lists.keys()
        if min(counts := (old.lists[part].trials, new.lists[part].trials)) == 1 < max(counts)
    }
    return ComparedCollection(task, make_table(task, systems), max_drops, borrowing)


def describe_rejected(checks: Sequence[Check], seed: int) -> list[str]:
    """The anchor checks that are neither ``unchanged`` nor a pass, in words."""
    return [
        f"{check.name}: "
        + (check.error or f"{check.difference:+.4f}, max_drop_since_anchor {check.max_drop:g}")
        for check in run_checks(checks, seed=seed)
        if check.status not in ACCEPTED
    ]


def compare_candidate(
    inputs: GateInputs,
    committed: Baseline,
    collections: Sequence[EvaluationSet],
    sealed: Baseline | None = None,
) -> list[ComparedCollection]:
    """Evaluate the candidate beside the committed values and those of their anchor.

    Args:
        inputs: The experiment, and where its data is.
        committed: The baseline; it has the collections, the queries and the measures.
        collections: The loaded datasets.
        sealed: The baseline whose ``max_drops`` count; None = the committed one.
    """
    inputs.progress("evaluating", 0, 1)
    sides, drops = (committed.by_collection, committed.anchor.by_collection), sealed or committed
    compared = []
    for task in collections:
        name, record = task.dataset.name, describe_collection(task, inputs.candidate)
        references = {"baseline": sides[0][name], "anchor": sides[1][name]}
        compared.append(compare_records(task, record, references, drops.drops_of(name)))
    return compared


def check_policy(
    inputs: GateInputs,
    committed: Baseline,
    compared: Sequence[ComparedCollection],
    list_changes: Sequence[ListChange],
    verdict: GateVerdict,
    reference: System | None = None,
) -> GateVerdict:
    """The verdict, completed with every check of the policy and the largest losses.

    Args:
        inputs: The experiment, and where its data is.
        committed: The baseline.
        compared: Of each collection.
        list_changes: What changed in the lists of the baseline, so that its ranks are unknown.
        verdict: As far as it is known.
        reference: The baseline's system; None = old ranks are not asked for.
    """
    policy, candidate, seed = inputs.policy, inputs.candidate, inputs.experiment.seed
    inputs.progress("testing", 0, 1)
    family = [check for each in compared for check in build_checks(policy, each)]
    since_anchor = [check for each in compared for check in build_checks(policy, each, "anchor")]
    # An anchor of the baseline's own values asks nothing that the other checks do not.
    tested = family if committed.is_anchor else [*family, *since_anchor]
    open_groups = {each.dataset for each in verdict.near_duplicates if each.withholds}
    checks = tuple(
        check.withhold_pass() if check.collection in open_groups else check
        for check in run_checks(tested, runs=policy.runs, seed=seed)
    )
    tasks = [each.task for each in compared]
    false_answers = tuple(check_false_answers(inputs, tasks))
    guards = tuple(
        _check_guard(guard, policy, each) for guard in policy.guards for each in compared
    )
    golden = tuple(_check_golden_queries(inputs, tasks))
    inputs.progress("finding the largest losses", 0, 1)
    changed = {change.collection for change in list_changes}
    losses: list[QueryRegression] = []
    for each in compared:
        old = None if each.task.dataset.name in changed else reference
        losses += _find_worst_queries(each, (old, candidate), count=policy.worst)
    results = {
        "anchor_reason": "" if committed.is_anchor else committed.anchor.reason,
        "needs_anchor": bool(describe_rejected(since_anchor, seed)),
        "config_changes": find_changes(committed.config, candidate.resolved_config),
        "list_changes": tuple(list_changes),
        "checks": checks,
        "false_answers": false_answers,
        "guards": guards,
        "golden": golden,
        "regressions": tuple(losses),
        "exit_code": decide_exit_code(
            checks,
            (*guards, *golden),
            verdict.blocking,
            false_answers=false_answers,
            is_reproduced=verdict.is_reproduced,
        ),
    }
    return verdict.model_copy(update=results)


def search_queries(collections: Sequence[EvaluationSet]) -> list[NearDuplicates | None]:
    """Near-duplicate queries of each collection; None = it has few or none."""
    return [find_near_duplicates(task.dataset, task.runs.queries) for task in collections]


def _check_guard(guard: Guard, policy: GatePolicy, compared: ComparedCollection) -> GuardResult:
    """Count the queries that lose more than a guard of the policy allows."""
    measure = compared.task.measures[policy.measures.index(guard.measure)]
    difference = compared.pair(measure.name).difference
    broken = int((~np.isfinite(difference)).sum())
    violations = int((difference < -guard.max_loss - NOISE).sum())
    share = violations / len(difference)
    return GuardResult(
        collection=compared.task.dataset.name,
        **guard.model_dump(),
        violations=violations,
        share=share,
        error=f"{broken} values are not finite" if broken else None,
        holds=not broken and share <= guard.max_share,
    )


def _check_golden_queries(
    inputs: GateInputs, collections: Sequence[EvaluationSet]
) -> Iterator[GoldenResult]:
    """Check which golden queries keep their document in the top ranks.

    Raises:
        UnknownNameError: One names a dataset that the experiment does not have.
    """
    names = [task.dataset.name for task in collections]
    for i, golden in enumerate(inputs.policy.golden):
        fitting = [task for task in collections if golden.dataset in {None, task.dataset.name}]
        if not fitting:
            where = inputs.source.where(("gate", "golden", i, "dataset"))
            raise UnknownNameError("dataset", str(golden.dataset), names, where=where)
        rank, error, task = None, None, fitting[0]
        if len(fitting) > 1:
            error = f"several datasets ({', '.join(names)}): name the golden query's 'dataset'"
        elif golden.query not in task.runs.queries:
            error = "no such query among the evaluated ones"
        else:
            traces = [
                explain_ranking(fitted, runs, golden.query).find_trace(golden.document)
                for fitted, runs in fit_repeats(inputs.candidate, task.runs, task.training)
            ]
            ranks = [trace.rank for trace in traces if trace is not None and trace.rank is not None]
            # The lowest place over the repeats; each of them must return the document.
            rank = max(ranks) if len(ranks) == len(traces) else None
        yield GoldenResult(
            collection="" if len(fitting) > 1 else task.dataset.name,
            **golden.model_dump(exclude={"dataset"}),
            rank=rank,
            error=error,
            holds=rank is not None and rank <= golden.top,
        )


def decide_exit_code(
    checks: Sequence[CheckResult],
    query_checks: Sequence[QueryCheck],
    blocking: Collection[CheckStatus],
    *,
    false_answers: Sequence[FalseAnswersResult] = (),
    is_reproduced: bool = True,
) -> int:
    """Decide the exit code of the gate.

    Args:
        checks: The checks on means.
        query_checks: Guards and golden queries.
        blocking: The statuses that block, by the policy.
        false_answers: The checks of false answers.
        is_reproduced: See :class:`GateVerdict`.

    Returns:
        0 = passed; 1 = a check regressed, or a guard or golden query is violated; 2 = something
        could not be checked, which no policy accepts; 3 = another status that blocks, or
        values of the baseline that nobody can compute again or trusts.
    """
    statuses = {check.status for check in checks if check.error is None}
    blocked = statuses.union(each.status for each in false_answers).intersection(blocking)
    if "regressed" in blocked or any(check.is_violated for check in query_checks):
        return 1
    errors = [check.error for check in checks] + [check.error for check in query_checks]
    if not (checks or false_answers) or any(error is not None for error in errors):
        return 2
    return 3 if blocked or not is_reproduced else 0

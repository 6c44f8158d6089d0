"""What a dataset holds, and what is worth knowing before trusting a number made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fusion_bench.data.alignment import align
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.data.switches import format_condition
from fusion_bench.evaluation.dataset_checks.near_duplicates import (
    describe_near_duplicates,
    find_near_duplicates,
)
from fusion_bench.evaluation.judge_checks.describe_judge import describe_judge
from fusion_bench.evaluation.judge_checks.judge_warnings import find_judge_warnings
from fusion_bench.evaluation.list_checks.list_infos import list_infos
from fusion_bench.evaluation.list_checks.list_notes import list_warnings
from fusion_bench.evaluation.report_records.list_info import ListInfo
from fusion_bench.evaluation.report_records.results.unjudged import DECLARE, SPARSE
from fusion_bench.evaluation.synthetic_queries import count_synthetic
from fusion_bench.evaluation.trials.first_trial import describe_first_trial
from fusion_bench.evaluation.unjudged.judgment_kind import judgment_kind
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.judgments.load_judge import load_judge
from fusion_bench.measures import no_relevant
from fusion_bench.util.formatting import pluralize

#: Of a field with more values only their number is said.
MOST_VALUES = 12
#: Unjudged documents count down to this rank.
UNJUDGED_DEPTH = 10


def describe_dataset(dataset: Dataset) -> dict[str, object]:
    """Name, counts, grades, splits, types and one record a list, as plain data for JSON."""
    queries = [dataset.queries[q] for q in dataset.qrels.queries if q in dataset.queries]
    grades = Counter(dataset.qrels.grades.tolist())
    return {
        "name": dataset.name,
        "version": dataset.spec.version,
        "description": dataset.spec.description,
        "license": dataset.spec.license,
        "fingerprint": dataset.fingerprint,
        "judged_queries": int((np.diff(dataset.qrels.offsets) > 0).sum()),
        "grades": {str(grade): count for grade, count in sorted(grades.items())},
        "judgments": dataset.spec.judgments,
        "binary_relevance": dataset.spec.binary_relevance,
        "splits": _counts(query.split for query in queries),
        "types": _counts(query.type for query in queries),
        "intents": _counts(query.intent for query in queries),
        "fields": _describe_fields(queries),
        "groups": len({query.group or query.id for query in queries}),
        "runs": [
            _run_row(dataset, run) | _count_trials(dataset, f"runs/{run.name}")
            for run in dataset.runs.values()
        ],
        "rerank_lists": [
            _row(run)
            | {"score_space": dataset.spaces[run.name]}
            | _count_trials(dataset, f"rerank/{run.name}")
            for run in dataset.rerankers.values()
        ],
        "judges": [_describe_judge(dataset, name) for name in dataset.spec.judges],
    }


def _describe_judge(dataset: Dataset, name: str) -> dict[str, object]:
    """Who a further judge is, and how much was judged."""
    judge, grades = dataset.spec.judges[name], load_judge(dataset, name)
    who = {"name": name, "kind": judge.kind, "family": judge.family, "sample": judge.sample}
    return {**who, "queries": len(grades), "judgments": len(grades.grades)}


def _describe_fields(queries: Sequence[Query]) -> dict[str, dict[str, int] | int]:
    """Of every other field how many queries have each value; of many values their number."""
    names = dict.fromkeys(name for query in queries for name in query.fields)
    counts = {name: _counts(query.fields.get(name) for query in queries) for name in names}
    return {
        name: values if len(values) <= MOST_VALUES else len(values)
        for name, values in counts.items()
    }


def _counts(names: Iterator[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name is not None).items()))


def _run_row(dataset: Dataset, run: Run) -> dict[str, object]:
    """A row of the runs; where some run has a switch, with how many judged queries turn it on."""
    if all(other.switch is None for other in dataset.runs.values()):
        return _row(run)
    judged = dataset.qrels.queries
    on = len(judged) if run.switch is None else len(run.switch.queries.intersection(judged))
    condition = "" if run.switch is None else format_condition(run.switch.condition)
    return _row(run) | {"when": condition or None, "on_queries": on}


def _count_trials(dataset: Dataset, key: str) -> dict[str, int]:
    """The files of a list, where some list has several."""
    if not dataset.later_trials:
        return {}
    return {"trials": dataset.trial_counts.get(key, 1)}


def _row(run: Run) -> dict[str, object]:
    sizes = np.diff(run.offsets)
    sizes = sizes if run.switch is None else sizes[sizes > 0]
    return {
        "name": run.name,
        "roles": sorted(run.roles),
        "queries": len(sizes),
        "median_depth": int(np.median(sizes)) if len(sizes) else 0,
        "lowest_score": float(run.scores.min()) if len(run.scores) else None,
        "highest_score": float(run.scores.max()) if len(run.scores) else None,
    }


def unjudged_shares(dataset: Dataset) -> dict[str, float]:
    """Share of unjudged documents among the first ten of each run; 0 with complete judgments."""
    if dataset.spec.judgments == "complete" or not dataset.runs:
        return dict.fromkeys(dataset.runs, 0.0)
    runs = align(dataset.qrels, list(dataset.runs.values()))
    top = (runs.ranks >= 1) & (runs.ranks <= UNJUDGED_DEPTH)
    shares = (top & ~runs.judged).sum(axis=1) / np.maximum(top.sum(axis=1), 1)
    return dict(zip(runs.sources, shares.tolist(), strict=True))


def dataset_notices(dataset: Dataset) -> list[str]:
    """One sentence for each thing that is allowed but worth knowing."""
    if not dataset.runs:
        return [
            f"{dataset.name} has no ranked list yet: fusion-bench retrieve or fusion-bench pull "
            "adds one."
        ]
    trials = [
        (each, align(each.qrels, [*each.runs.values()], rerankers=[*each.rerankers.values()]))
        for each in dataset.trials
    ]
    infos, runs = list_infos(trials), trials[0][1]
    notices = [] if dataset.is_judged else [_ask_to_judge(dataset)]
    skipped = set() if dataset.is_judged else {"unmatched documents"}
    for info in infos:
        warnings = list_warnings(info, np.inf, is_judged=dataset.is_judged)
        notices += [text for key, text in warnings if key not in skipped]
    for info in infos:
        notices += _describe_list(info, len(runs.queries))
    if dataset.is_judged and judgment_kind(dataset, dataset.qrels.queries) == "undeclared":
        notices.append(f"{SPARSE} {DECLARE}")
    judge = describe_judge(dataset)
    notices += [warning.text for warning in find_judge_warnings(judge, infos)]
    negative = [info.title for info in infos if info.kind == "run" and (info.lowest_score or 0) < 0]
    if negative:
        notices.append(
            f"Scores below 0 in {' and '.join(negative)}: with missing: zero, a document that a "
            "list lacks counts 0, more than one that the list returned with less."
        )
    outside = int(no_relevant(runs, dataset.spec.binary_relevance).sum())
    if outside and dataset.is_judged:
        count = pluralize(outside, "judged query")
        notices.append(f"{count} without a relevant document: scored 0, and counted.")
    if synthetic := count_synthetic(dataset.queries, dataset.qrels.queries):
        count = f"{synthetic:,} of {pluralize(len(dataset.qrels.queries), 'query')}"
        notices.append(f"{count}: synthetic, written by a model; never averaged with real ones.")
    if (duplicates := find_near_duplicates(dataset, min_share=0)) is not None:
        notices.append(describe_near_duplicates(duplicates))
    return [*notices, *describe_first_trial(dataset)]


def _describe_list(info: ListInfo, judged: int) -> Iterator[str]:
    """When it is on, and which rows were dropped."""
    if info.on_queries:
        rest = f"{info.on_queries:,} of {pluralize(judged, 'judged query')}"
        yield f"{info.title} is on for {rest} (when: {format_condition(info.when)})."
    if info.duplicate_rows:
        count = pluralize(info.duplicate_rows, "duplicate row")
        yield f"{info.title} had {count}, which were dropped."


def _ask_to_judge(dataset: Dataset) -> str:
    return (
        f"Nothing is judged: eval, tune and gate refuse {dataset.name} until there are judgments. "
        "Make some with fusion-bench judge."
    )

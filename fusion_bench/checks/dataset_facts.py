"""What is noticed about a dataset's lists, queries, repeats before any number is trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fusion_bench.checks import query_warnings
from fusion_bench.checks.collection_warnings import find_list_warnings, warn_as_read
from fusion_bench.checks.judges import describe_judge, find_judge_warnings
from fusion_bench.checks.lists import list_infos
from fusion_bench.checks.obstacles import find_meeting_warnings
from fusion_bench.checks.records import ListInfo
from fusion_bench.checks.unjudged import DECLARE, SPARSE, UNJUDGED_DEPTH, judgment_kind
from fusion_bench.data.alignment import align
from fusion_bench.data.records import format_condition
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset import Dataset, load_judge
from fusion_bench.measures import no_relevant
from fusion_bench.util.formatting import list_names, pluralize


def select_repeat(dataset: Dataset, number: int) -> Dataset:
    """The dataset with one file of each list; itself where every list has one.

    No list stands there with another repeat: of several numbers of files the fewest count.

    Args:
        dataset: Any.
        number: From 1.

    Raises:
        ConfigError: Its lists have fewer repeats.
    """
    count = dataset.count_repeats()
    if number > count:
        raise ConfigError(
            f"--trial: {dataset.name} has {pluralize(count, 'trial')} of these lists, so "
            f"there is no {number}: name one from 1 to {count}"
        )
    return dataset.repeats[number - 1] if number > 1 else replace(dataset, later_repeats=())


def describe_selection(dataset: Dataset, number: int = 1) -> str | None:
    """Which repeat of which lists is shown; None where every list has one file.

    Args:
        dataset: With every repeat.
        number: The one that is shown.
    """
    if not dataset.later_repeats:
        return None
    counts = dataset.repeat_counts
    names = [key.partition("/")[2] for key in sorted(counts)]
    numbers = " or ".join(map(str, sorted({*counts.values()})))
    return f"trial {number} of {numbers} of {list_names(names)}"


def describe_first_repeat(dataset: Dataset, *results: str) -> tuple[str, ...]:
    """Sentences on the results that read one repeat of several.

    Args:
        dataset: With every repeat.
        results: Names of such results, in the plural, beside the groups that are found.

    Returns:
        Empty where every list has one file.
    """
    repeat = describe_selection(dataset)
    if repeat is None:
        return ()
    texts = []
    if results:
        names = " and ".join(filter(None, (", ".join(results[:-1]), results[-1])))
        texts.append(f"{names} are those of {repeat}. New trials may give others.")
    has_runs = any(part.startswith("runs/") for part in dataset.repeat_lists)
    if has_runs and (dataset.spec.grouping == "auto" or dataset.found_groups):
        grouping = f"'groups: {dataset.spec.grouping}'"
        texts.append(f"{grouping} compared {repeat}. New trials may give other groups.")
    return tuple(texts)


def find_unjudged_queries(dataset: Dataset) -> set[str]:
    """The queries that a list of any repeat answers, and that have no judgment."""
    answered: set[str] = set()
    for run in (run for repeat in dataset.repeats for run in repeat.runs.values()):
        sizes = np.diff(run.offsets).tolist()
        answered.update(query for query, size in zip(run.queries, sizes, strict=True) if size)
    return answered - set(dataset.qrels.queries)


#: Of a field with more values only their number is said.
MOST_VALUES = 12


def describe_dataset(dataset: Dataset) -> dict[str, object]:
    """Name, counts, grades, splits, types and one record a list, as plain data for JSON."""
    queries = [dataset.queries[q] for q in dataset.qrels.queries if q in dataset.queries]
    grades = Counter(dataset.qrels.grades.tolist())
    names = dict.fromkeys(name for query in queries for name in query.fields)
    counts = {name: _counts(query.fields.get(name) for query in queries) for name in names}
    judges = []
    for name, judge in dataset.spec.judges.items():
        judged = load_judge(dataset, name)
        who = {"name": name, "kind": judge.kind, "family": judge.family, "sample": judge.sample}
        judges.append({**who, "queries": len(judged), "judgments": len(judged.grades)})
    return {
        "name": dataset.name,
        "version": dataset.spec.version,
        "description": dataset.spec.description,
        "license": dataset.spec.license,
        "fingerprint": dataset.fingerprint,
        "judged_queries": int((np.diff(dataset.qrels.offsets) > 0).sum()),
        **({"held_out": dict(held_out)} if (held_out := dataset.held_out.counts) else {}),
        "grades": {str(grade): count for grade, count in sorted(grades.items())},
        "judgments": dataset.spec.judgments,
        "binary_relevance": dataset.spec.binary_relevance,
        "splits": _counts(query.split for query in queries),
        "types": _counts(query.type for query in queries),
        "intents": _counts(query.intent for query in queries),
        "fields": {n: c if len(c) <= MOST_VALUES else len(c) for n, c in counts.items()},
        "groups": len({query.group or query.id for query in queries}),
        "runs": [
            _run_row(dataset, run) | _count_repeats(dataset, f"runs/{run.name}")
            for run in dataset.runs.values()
        ],
        "rerank_lists": [
            _row(run)
            | {"score_space": dataset.spaces[run.name]}
            | _count_repeats(dataset, f"rerank/{run.name}")
            for run in dataset.rerankers.values()
        ],
        "judges": judges,
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


def _count_repeats(dataset: Dataset, key: str) -> dict[str, int]:
    """The files of a list, where some list has several."""
    if not dataset.later_repeats:
        return {}
    return {"trials": dataset.repeat_counts.get(key, 1)}


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
    repeats = [
        (each, align(each.qrels, [*each.runs.values()], rerankers=[*each.rerankers.values()]))
        for each in dataset.repeats
    ]
    infos, runs = list_infos(repeats), repeats[0][1]
    notices = [warning.text for warning in query_warnings.warn_held_out(infos)]
    unjudged = (
        f"Nothing is judged: eval, tune and gate refuse {dataset.name} until there are judgments. "
        "Make some with fusion-bench judge."
    )
    notices += [] if dataset.is_judged else [unjudged]
    skipped = set() if dataset.is_judged else {"unmatched documents"}
    for info in infos:
        warnings = find_list_warnings(info, np.inf, is_judged=dataset.is_judged)
        notices += [each.text for each in warnings if each.key not in skipped]
    if dataset.is_judged:
        notices += [each.text for each in find_meeting_warnings(infos)]
    notices += [each.text for each in warn_as_read("The judgments", dataset.qrels.notes)]
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
    if synthetic := query_warnings.count_synthetic(dataset.queries, dataset.qrels.queries):
        count = f"{synthetic:,} of {pluralize(len(dataset.qrels.queries), 'query')}"
        notices.append(f"{count}: synthetic, written by a model; never averaged with real ones.")
    if (duplicates := query_warnings.find_near_duplicates(dataset, min_share=0)) is not None:
        notices.append(query_warnings.describe_near_duplicates(duplicates))
    return [*notices, *describe_first_repeat(dataset)]


def _describe_list(info: ListInfo, judged: int) -> Iterator[str]:
    """When it is on, and which rows were dropped."""
    if info.on_queries:
        rest = f"{info.on_queries:,} of {pluralize(judged, 'judged query')}"
        yield f"{info.title} is on for {rest} (when: {format_condition(info.when)})."
    if info.duplicate_rows:
        count = pluralize(info.duplicate_rows, "duplicate row")
        yield f"{info.title} had {count}, which were dropped."

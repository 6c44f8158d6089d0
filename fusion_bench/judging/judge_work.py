"""What ``fusion-bench judge`` is asked to do, opened: systems, pool, plan, the judge's task."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fusion_bench.errors import ConfigError
from fusion_bench.io.held_out import refuse_copy
from fusion_bench.io.json_objects import read_whole_texts
from fusion_bench.io.outputs import check_output, write_output
from fusion_bench.judging import pools
from fusion_bench.judging.judge_files import (
    JUDGMENTS_FOLDER,
    JudgeFile,
    Judgment,
    check_judge,
    judge_files,
    merge_qrels,
    pair_grades,
    read_sheet,
)
from fusion_bench.judging.next_documents import JudgingPlan, plan_judging
from fusion_bench.judging.options import CombineName, JudgeOptions, OrderName
from fusion_bench.util.files import resolve_path
from fusion_bench.util.formatting import Progress, ignore_progress


@dataclass(frozen=True)
class JudgeTask:
    """The work of one judge.

    Attributes:
        file: The judge's own file.
        greatest: The greatest grade of the scale, which begins at 0.
        rel: The grade from which a document is relevant.
        groups: The documents to judge, query by query, in the order of the queries; those that the
            judge has judged are among them.
        order: How the documents of a query are put in order; None = as they are.
        seed: Of a random order.
        known: Grades of pooled documents that nobody is asked for, as the dataset's own are.
    """

    file: JudgeFile
    greatest: int
    rel: int
    groups: Sequence[Sequence[pools.PooledDocument]]
    order: OrderName | None
    seed: int
    known: Mapping[pools.Pair, int]

    @property
    def size(self) -> int:
        """How many documents are asked for."""
        return sum(each.pair not in self.known for group in self.groups for each in group)

    def grade_of(self, pair: pools.Pair) -> int | None:
        """The grade that is known of a document; None = it is to be judged."""
        judgment = self.file.judgments.get(pair)
        return self.known.get(pair) if judgment is None else judgment.grade

    def arrange(self, group: Sequence[pools.PooledDocument]) -> list[pools.PooledDocument]:
        """The documents of one query in order, by what is known of them now."""
        if self.order is None:
            return list(group)
        grades = {each.pair: self.grade_of(each.pair) for each in group}
        relevant = {pair: grade >= self.rel for pair, grade in grades.items() if grade is not None}
        return pools.ORDERS[self.order](group, relevant, self.seed)

    def arrange_all(self) -> list[pools.PooledDocument]:
        """Every document that is asked for, judged by this judge or not, in order."""
        documents = (each for group in self.groups for each in self.arrange(group))
        return [each for each in documents if each.pair not in self.known]


#: The greatest grade that a file can hold.
MOST_GRADE: Final = 999


def _open_task(
    judged: pools.JudgedSystems,
    pool: Sequence[pools.PooledDocument],
    options: JudgeOptions,
    *,
    asks_again: bool = False,
) -> JudgeTask:
    """The work of one judge on a pool.

    Documents that the dataset's judgments hold are not asked for again. Those that another judge
    of ``judgments/`` graded are, without a hint of that grade.

    Args:
        judged: The systems.
        pool: Their documents.
        options: The judge, the order, and the greatest grade.
        asks_again: Documents that the dataset's judgments hold are asked for, too.

    Raises:
        ConfigError: The dataset's judgments are complete, or a name or scale cannot be used.
        DataError: A judge's file breaks a rule.
    """
    dataset = judged.dataset
    if dataset.spec.judgments == "complete":
        raise ConfigError(
            f"{judged.path}: its judgments are complete, so every other document is not relevant: "
            "remove 'judgments: complete' to judge more"
        )
    try:
        check_judge(options.judge)
    except ValueError as error:
        raise ConfigError(f"--judge: {error}") from None
    relevance = dataset.spec.binary_relevance
    others: dict[pools.Pair, int] = {}
    for name, path in judge_files(judged.path).items():
        for pair, judgment in JudgeFile(path, name).judgments.items():
            others[pair] = max(judgment.grade, others.get(pair, 0))
    grades = pair_grades(dataset.qrels)
    pairs = {each.pair for each in pool} - others.keys()
    # A machine's grades stand for nobody's: people judge the same documents, and are compared.
    asks_all = asks_again or dataset.spec.is_judged_by_machine
    known = {} if asks_all else {pair: grades[pair] for pair in pairs if pair in grades}
    groups, folder = _group_by_query(pool), judged.path.parent / JUDGMENTS_FOLDER
    asked = options.max_grade
    least = max(relevance, int(dataset.qrels.grades.max(initial=0)), *others.values())
    if asked is not None and asked < least:
        raise ConfigError(
            f"--max-grade: {asked}, and grade {least} is in use: the scale must hold it"
        )
    greatest = least if asked is None else asked
    if greatest > MOST_GRADE:
        raise ConfigError(f"grades up to {greatest}: a judge's file has grades up to {MOST_GRADE}")
    return JudgeTask(
        file=JudgeFile(folder / f"{options.judge}.csv", options.judge),
        greatest=greatest,
        rel=relevance,
        groups=[groups[name] for name in pools.order_queries(groups, options.order, options.seed)],
        order=options.order,
        seed=options.seed,
        known=known,
    )


#: Suffixes of files that are not in TREC's format.
OTHER_FORMATS = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz", ".yaml", ".yml"})


@dataclass(frozen=True)
class JudgeWork:
    """The work of one judge.

    Attributes:
        judged: The systems.
        options: What was asked for.
        task: What is to be judged.
        plan: What could still change the comparison that was named; None = none was.
    """

    judged: pools.JudgedSystems
    options: JudgeOptions
    task: JudgeTask
    plan: JudgingPlan | None = None

    def documents(self) -> list[pools.PooledDocument]:
        """The documents that are asked for, in order; those that are judged are left out."""
        known = self.task.file.judgments
        documents = self.task.arrange_all()
        if self.plan is not None:
            documents = [document for document, _ in self.plan.documents[: self.options.budget]]
        return [each for each in documents if each.pair not in known]

    def query_texts(self) -> dict[str, str]:
        """Query id → text."""
        queries = self.judged.dataset.queries
        return {name: query.text for name, query in queries.items() if query.text}

    def document_texts(self) -> dict[str, str]:
        """Document id → title and text, of the documents that are asked for."""
        wanted = {each.document for each in self.task.arrange_all()}
        return read_whole_texts(self.judged.dataset.documents, wanted)


def open_work(
    judged: pools.JudgedSystems,
    options: JudgeOptions,
    progress: Progress = ignore_progress,
    *,
    queries: Collection[str] | None = None,
) -> JudgeWork:
    """Build the pool, or the plan, and the judge's task.

    Args:
        judged: The systems.
        options: Who judges what.
        progress: Called as the work goes on.
        queries: Only documents of these queries, also those that the judgments hold; None = of all.

    Raises:
        FusionBenchError: The data break a rule, or a name is unknown.
    """
    pool = pools.build_pool(judged, options.depth)
    if queries is not None:
        pool = pools.keep_queries(pool, frozenset(queries))
    task = _open_task(judged, pool, options, asks_again=queries is not None)
    if options.budget is None:
        return JudgeWork(judged, options, task)
    grades = {pair: each.grade for pair, each in task.file.judgments.items()}
    named = {"greatest": task.greatest, "progress": progress}
    plan = options.call(plan_judging, judged, grades, **named)
    groups = _group_by_query(document for document, _ in plan.documents[: options.budget])
    # In the order of the plan, one query at a time.
    limited = replace(task, groups=[*groups.values()], order=None)
    return JudgeWork(judged, options, limited, plan)


def import_sheet(
    judged: pools.JudgedSystems, path: Path, options: JudgeOptions
) -> tuple[JudgeFile, int]:
    """Put the grades of a spreadsheet into a judge's file.

    Returns:
        The file, and how many grades the sheet has.

    Raises:
        DataError: The sheet breaks a rule; nothing is written then.
    """
    lists = judged.dataset.runs.values()
    longest = max((int(run.ranks.max(initial=1)) for run in lists), default=1)
    pool = pools.build_pool(judged, depth=max(options.depth, longest))
    task = _open_task(judged, pool, options)
    documents = {
        query: {each.document for each in group} for query, group in _group_by_query(pool).items()
    }
    judgments = read_sheet(path, options.judge, task.greatest, documents)
    if judgments:
        with task.file.lock():
            task.file.add_all(judgments)
    return task.file, len(judgments)


def _group_by_query(
    documents: Iterable[pools.PooledDocument],
) -> dict[str, list[pools.PooledDocument]]:
    """The documents of each query, in the order of the documents."""
    groups: dict[str, list[pools.PooledDocument]] = {}
    for each in documents:
        groups.setdefault(each.query, []).append(each)
    return groups


def _take_mean(grades: Sequence[int]) -> int:
    """The mean, rounded; a half is rounded down."""
    whole, rest = divmod(sum(grades), len(grades))
    return whole + (2 * rest > len(grades))


#: ``majority``: of equally frequent grades the least, so that a tie is no gain. ``first``: that of
#: the first judge, by name.
COMBINE: Mapping[CombineName, Callable[[Sequence[int]], int]] = {
    "majority": lambda grades: min(statistics.multimode(grades)),
    "mean": _take_mean,
    "first": lambda grades: grades[0],
}


def combine_grades(
    judges: Mapping[str, Iterable[Judgment]], how: CombineName = "majority"
) -> tuple[dict[pools.Pair, int], int, int]:
    """Make one grade of each document's grades.

    Args:
        judges: The judgments of each judge, by name.
        how: ``majority``, ``mean`` or ``first``.

    Returns:
        The grades; how many documents more than one judge graded; how many of these have different
        grades.
    """
    given: dict[pools.Pair, list[int]] = {}
    for name in sorted(judges):
        for judgment in judges[name]:
            given.setdefault(judgment.pair, []).append(judgment.grade)
    several = [grades for grades in given.values() if len(grades) > 1]
    combined = {pair: COMBINE[how](grades) for pair, grades in given.items()}
    return combined, len(several), sum(len(set(grades)) > 1 for grades in several)


def write_qrels(
    judged: pools.JudgedSystems, path: Path, how: CombineName
) -> tuple[dict[str, int], list[str]]:
    """Write the dataset's judgments together with those of its judges, in TREC's format.

    Args:
        judged: Gives the dataset.
        path: The file to write.
        how: How several people's grades of a document become one.

    Returns:
        How many documents are judged, judged by several, graded differently by these, new, and
        graded differently than before; and the names of the judges.

    Raises:
        ConfigError: Nobody judged anything, a machine gave the dataset's judgments, a campaign
            holds out queries, or the file is not ours to write.
    """
    refuse_copy(judged.path)
    judges = {
        name: JudgeFile(file, name).judgments.values()
        for name, file in judge_files(judged.path).items()
    }
    if not any(judges.values()):
        raise ConfigError(
            f"{judged.path.parent / JUDGMENTS_FOLDER}: no judge has judged anything: run "
            "'fusion-bench judge' first"
        )
    spec = judged.dataset.spec.qrels
    if spec is not None and spec.kind == "machine":
        raise ConfigError(
            f"{judged.path}: qrels: a machine gave these grades, and people's among them would "
            "hide that: name the file of each judge under 'judges' instead "
            "(docs/reference/grades.md)"
        )
    if path.suffix.lower() in OTHER_FORMATS:
        raise ConfigError(f"--write-qrels: {path} is written in TREC's format: name it .txt")
    folder = resolve_path(judged.path.parent / JUDGMENTS_FOLDER)
    is_owned = resolve_path(path).is_relative_to(folder)
    check_output(path, option="--write-qrels", is_owned=is_owned)
    grades, several, disagreements = combine_grades(judges, how)
    merged = merge_qrels(judged.dataset.qrels, grades)
    write_output(path, merged.to_trec().encode(), option="--write-qrels", is_owned=is_owned)
    before = pair_grades(judged.dataset.qrels)
    counts = {
        "judged": len(grades),
        "judged_by_several": several,
        "disagreements": disagreements,
        "added": len(grades.keys() - before.keys()),
        "changed": sum(before.get(pair, grade) != grade for pair, grade in grades.items()),
    }
    return counts, sorted(judges)


#: What is said of the comparison that judging is to decide.
PLAN_FIELDS: Final = (
    *("measure", "baseline", "candidate", "queries", "difference", "low", "high", "is_exact"),
    *("answer", "low_answer", "high_answer", "is_decided"),
)


def describe_work(work: JudgeWork) -> dict[str, Any]:
    """The documents that are asked for, and what they could change."""
    plan, effects = work.plan, list_effects(work)
    record: dict[str, Any] = {"dataset": work.judged.dataset.name, "judge": work.options.judge}
    if plan is not None:
        record["plan"] = {
            **{name: getattr(plan, name) for name in PLAN_FIELDS},
            "documents": len(plan.documents),
            "ignored_queries": plan.ignored_queries,
        }
    record["max_grade"] = work.task.greatest
    record["documents"] = [
        {
            "query": each.query,
            "document": each.document,
            "best_rank": each.best_rank,
            **({"effect": effects[each.pair]} if each.pair in effects else {}),
        }
        for each in work.documents()
    ]
    return record


def list_effects(work: JudgeWork) -> dict[pools.Pair, float]:
    """How far each document could move the difference of its query; empty for a pool."""
    documents = () if work.plan is None else work.plan.documents
    return {document.pair: effect for document, effect in documents}

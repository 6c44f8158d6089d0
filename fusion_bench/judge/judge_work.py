"""What ``fusion-bench judge`` is asked to do, opened: systems, pool, plan and the judge's task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress
from fusion_bench.io.excerpts import read_whole_texts
from fusion_bench.io.outputs import check_output, write_output
from fusion_bench.judge.files.combined_grades import (
    CombinedGrades,
    CombineName,
    MergedQrels,
    combine_grades,
    merge_qrels,
)
from fusion_bench.judge.files.judge_file import FOLDER, JudgeFile, judge_files
from fusion_bench.judge.files.spreadsheet import SheetRules, read_sheet
from fusion_bench.judge.judge_task import JudgeTask, limit_task, open_task
from fusion_bench.judge.next.plan import JudgingPlan, plan_judging
from fusion_bench.judge.pool.chosen_queries import keep_queries
from fusion_bench.judge.pool.judged_systems import JudgedSystems
from fusion_bench.judge.pool.orders import OrderName
from fusion_bench.judge.pool.pool import PooledDocument, build_pool
from fusion_bench.util.files.real_paths import resolve_path

#: Suffixes of files that are not in TREC's format.
OTHER_FORMATS = frozenset({".csv", ".tsv", ".json", ".jsonl", ".parquet", ".gz", ".yaml", ".yml"})


@dataclass(frozen=True)
class Question:
    """The comparison that judging is to decide.

    Attributes:
        budget: Documents to judge at most.
        measure: None = the experiment's first.
        baseline: None = the experiment's.
        candidate: None = the best of the other systems.
    """

    budget: int
    measure: str | None = None
    baseline: str | None = None
    candidate: str | None = None


@dataclass(frozen=True)
class JudgeOptions:
    """Who judges what, in which order.

    Attributes:
        judge: The judge's name.
        depth: Depth of the pool.
        order: Of the pool.
        seed: Of a random order.
        max_grade: The greatest grade; None = the greatest that is known.
        question: Only documents that could still change this comparison; None = the whole pool.
        queries: Only documents of these queries; None = of all.
    """

    judge: str = "judge"
    depth: int = 10
    order: OrderName = "random"
    seed: int = 0
    max_grade: int | None = None
    question: Question | None = None
    queries: frozenset[str] | None = None


@dataclass(frozen=True)
class JudgeWork:
    """The work of one judge.

    Attributes:
        judged: The systems.
        options: What was asked for.
        task: What is to be judged.
        plan: What could still change the comparison that was named; None = none was.
    """

    judged: JudgedSystems
    options: JudgeOptions
    task: JudgeTask
    plan: JudgingPlan | None = None

    def documents(self) -> list[PooledDocument]:
        """The documents that are asked for, in order; those that are judged are left out."""
        known = self.task.file.judgments
        documents = self.task.arrange_all()
        if self.plan is not None:
            chosen = self.plan.documents[: self.options.question.budget]  # type: ignore[union-attr]
            documents = [each.document for each in chosen]
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
    judged: JudgedSystems, options: JudgeOptions, progress: Progress = ignore_progress
) -> JudgeWork:
    """Build the pool, or the plan, and the judge's task.

    Raises:
        FusionBenchError: The data break a rule, or a name is unknown.
    """
    question = options.question
    pool = build_pool(judged, options.depth)
    if options.queries is not None:
        pool = keep_queries(pool, options.queries)
    task = open_task(
        judged,
        pool,
        judge=options.judge,
        order=options.order,
        seed=options.seed,
        max_grade=options.max_grade,
        asks_again=options.queries is not None,
    )
    if question is None:
        return JudgeWork(judged, options, task)
    grades = {pair: each.grade for pair, each in task.file.judgments.items()}
    plan = plan_judging(
        judged,
        grades,
        greatest=task.greatest,
        measure=question.measure,
        baseline=question.baseline,
        candidate=question.candidate,
        progress=progress,
    )
    chosen = [each.document for each in plan.documents[: question.budget]]
    return JudgeWork(judged, options, limit_task(task, chosen), plan)


def import_sheet(judged: JudgedSystems, path: Path, options: JudgeOptions) -> tuple[JudgeFile, int]:
    """Put the grades of a spreadsheet into a judge's file.

    Returns:
        The file, and how many grades the sheet has.

    Raises:
        DataError: The sheet breaks a rule; nothing is written then.
    """
    pool = build_pool(judged, depth=max(options.depth, _longest(judged)))
    task = open_task(judged, pool, judge=options.judge, order=None, max_grade=options.max_grade)
    documents = {
        query: {each.document for each in group} for query, group in pool.by_query().items()
    }
    judgments = read_sheet(path, SheetRules(options.judge, task.greatest, documents))
    if judgments:
        with task.file.lock():
            task.file.add_all(judgments)
    return task.file, len(judgments)


def _longest(judged: JudgedSystems) -> int:
    return max((int(run.ranks.max(initial=1)) for run in judged.dataset.runs.values()), default=1)


def write_qrels(
    judged: JudgedSystems, path: Path, how: CombineName
) -> tuple[MergedQrels, CombinedGrades, Sequence[str]]:
    """Write the dataset's judgments together with those of its judges, in TREC's format.

    Args:
        judged: Gives the dataset.
        path: The file to write.
        how: How several people's grades of a document become one.

    Returns:
        The judgments, what was combined, and the names of the judges.

    Raises:
        ConfigError: Nobody judged anything, a machine gave the dataset's judgments, or the file is
            not ours to write.
    """
    judges = {
        name: JudgeFile(file, name).judgments.values()
        for name, file in judge_files(judged.path).items()
    }
    if not any(judges.values()):
        raise ConfigError(
            f"{judged.path.parent / FOLDER}: no judge has judged anything: run 'fusion-bench "
            "judge' first"
        )
    spec = judged.dataset.spec.qrels
    if spec is not None and spec.kind == "machine":
        raise ConfigError(
            f"{judged.path}: qrels: a machine gave these grades, and people's among them would "
            "hide that: name the file of each judge under 'judges' instead (docs/grades.md)"
        )
    if path.suffix.lower() in OTHER_FORMATS:
        raise ConfigError(f"--write-qrels: {path} is written in TREC's format: name it .txt")
    folder = resolve_path(judged.path.parent / FOLDER)
    is_owned = resolve_path(path).is_relative_to(folder)
    check_output(path, option="--write-qrels", is_owned=is_owned)
    combined = combine_grades(judges, how)
    merged = merge_qrels(judged.dataset.qrels, combined.grades)
    data = merged.qrels.to_trec().encode()
    write_output(path, data, option="--write-qrels", is_owned=is_owned)
    return merged, combined, sorted(judges)

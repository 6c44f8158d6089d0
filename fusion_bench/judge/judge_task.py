"""What one judge still has to judge, and what is known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion_bench.errors import ConfigError
from fusion_bench.judge.files.combined_grades import pair_grades
from fusion_bench.judge.files.judge_file import JudgeFile, judge_files, judge_path
from fusion_bench.judge.files.judgment import check_judge, top_grade
from fusion_bench.judge.pool.judged_systems import JudgedSystems
from fusion_bench.judge.pool.orders import ORDERS, OrderName, order_queries
from fusion_bench.judge.pool.pool import Pair, Pool, PooledDocument


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
    groups: Sequence[Sequence[PooledDocument]]
    order: OrderName | None
    seed: int
    known: Mapping[Pair, int]

    @property
    def size(self) -> int:
        """How many documents are asked for."""
        return sum(each.pair not in self.known for group in self.groups for each in group)

    def grade_of(self, pair: Pair) -> int | None:
        """The grade that is known of a document; None = it is to be judged."""
        judgment = self.file.judgments.get(pair)
        return self.known.get(pair) if judgment is None else judgment.grade

    def arrange(self, group: Sequence[PooledDocument]) -> list[PooledDocument]:
        """The documents of one query in order, by what is known of them now."""
        if self.order is None:
            return list(group)
        grades = {each.pair: self.grade_of(each.pair) for each in group}
        relevant = {pair: grade >= self.rel for pair, grade in grades.items() if grade is not None}
        return ORDERS[self.order](group, relevant, self.seed)

    def arrange_all(self) -> list[PooledDocument]:
        """Every document that is asked for, judged by this judge or not, in order."""
        documents = (each for group in self.groups for each in self.arrange(group))
        return [each for each in documents if each.pair not in self.known]


def open_task(
    judged: JudgedSystems,
    pool: Pool,
    *,
    judge: str,
    order: OrderName | None,
    seed: int = 0,
    max_grade: int | None = None,
    asks_again: bool = False,
) -> JudgeTask:
    """The work of one judge on a pool.

    Documents that the dataset's judgments hold are not asked for again. Those that another judge
    of ``judgments/`` graded are, without a hint of that grade.

    Args:
        judged: The systems.
        pool: Their documents.
        judge: The judge's name.
        order: Of the documents of a query; None = as they stand in the pool.
        seed: Of a random order.
        max_grade: The greatest grade of the scale; None = the greatest that is known.
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
    check_judge(judge)
    relevance = dataset.spec.binary_relevance
    others: dict[Pair, int] = {}
    for name, path in judge_files(judged.path).items():
        for pair, judgment in JudgeFile(path, name).judgments.items():
            others[pair] = max(judgment.grade, others.get(pair, 0))
    grades = pair_grades(dataset.qrels)
    pairs = {each.pair for each in pool.documents} - others.keys()
    # A machine's grades stand for nobody's: people judge the same documents, and are compared.
    asks_all = asks_again or dataset.spec.is_judged_by_machine
    known = {} if asks_all else {pair: grades[pair] for pair in pairs if pair in grades}
    groups = pool.by_query()
    if order is not None:
        groups = {query: groups[query] for query in order_queries(groups, order, seed)}
    return JudgeTask(
        file=JudgeFile(judge_path(judged.path, judge), judge),
        greatest=top_grade(dataset.qrels, relevance, max_grade, others.values()),
        rel=relevance,
        groups=[*groups.values()],
        order=order,
        seed=seed,
        known=known,
    )


def limit_task(task: JudgeTask, documents: Sequence[PooledDocument]) -> JudgeTask:
    """The same work on these documents alone, in this order, one query at a time."""
    groups: dict[str, list[PooledDocument]] = {}
    for each in documents:
        groups.setdefault(each.query, []).append(each)
    return replace(task, groups=[*groups.values()], order=None)

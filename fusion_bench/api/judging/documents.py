"""The documents that people are to judge, and their grades from a spreadsheet."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from fusion_bench.api.results.documents_to_judge import DocumentsToJudge
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset_search import find_folders
from fusion_bench.judge.judge_work import JudgeOptions, Question, import_sheet, open_work
from fusion_bench.judge.pool.judged_systems import (
    JudgedSystems,
    is_experiment,
    read_judged_systems,
)
from fusion_bench.judge.pool.orders import ORDERS, OrderName

PathLike = str | os.PathLike[str]


def documents_to_judge(
    target: PathLike,
    *,
    budget: int = 50,
    measure: str | None = None,
    baseline: str | None = None,
    candidate: str | None = None,
    systems: Sequence[str] = (),
    dataset: str | None = None,
    judge: str = "judge",
    max_grade: int | None = None,
    folders: Collection[PathLike] | None = None,
) -> DocumentsToJudge:
    """The documents that could still change a comparison, what changes most first.

    ``.is_decided`` says whether any grades could still change its answer.

    Args:
        target: An experiment, or a dataset: its name, its folder or its ``dataset.yaml``.
        budget: Documents at most.
        measure: The measure that decides; by default the experiment's first.
        baseline: By default the experiment's.
        candidate: By default the best of the other systems.
        systems: Names, beside the baseline; empty = all.
        dataset: One of several datasets of the experiment.
        judge: Who judges; what is in this judge's file is known.
        max_grade: The greatest grade; by default the greatest of the judgments.
        folders: Where named datasets live; by default as for :func:`gate`.

    Raises:
        FusionBenchError: A file breaks a rule, a name is unknown, or the completions of the
            measure are not known.
    """
    _require_positive("budget", budget)
    question = Question(budget, measure, baseline, candidate)
    options = JudgeOptions(judge, max_grade=max_grade, question=question)
    return DocumentsToJudge(open_work(_read_systems(target, systems, dataset, folders), options))


def pool(
    target: PathLike,
    *,
    depth: int = 10,
    order: OrderName = "random",
    seed: int = 0,
    queries: Collection[str] | None = None,
    systems: Sequence[str] = (),
    dataset: str | None = None,
    judge: str = "judge",
    max_grade: int | None = None,
    folders: Collection[PathLike] | None = None,
) -> DocumentsToJudge:
    """Every document that some system returns within a depth and that is not judged.

    Args:
        target: An experiment, or a dataset: its name, its folder or its ``dataset.yaml``.
        depth: The greatest rank that counts.
        order: ``random``, ``pool``, ``system``, ``move-to-front`` or ``uncertainty``.
        seed: Of a random order.
        queries: Only documents of these queries, such as :func:`draw_queries` draws; also those
            that the judgments hold.
        systems: Names, beside the baseline; empty = all.
        dataset: One of several datasets of the experiment.
        judge: Who judges; what is in this judge's file is left out.
        max_grade: The greatest grade; by default the greatest of the judgments.
        folders: Where named datasets live; by default as for :func:`gate`.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    _require_positive("depth", depth)
    if order not in ORDERS:
        raise ConfigError(f"order: {order!r} is none of {', '.join(ORDERS)}")
    ids = None if queries is None else frozenset(queries)
    options = JudgeOptions(judge, depth, order, seed, max_grade, queries=ids)
    return DocumentsToJudge(open_work(_read_systems(target, systems, dataset, folders), options))


def import_grades(
    target: PathLike,
    spreadsheet: PathLike,
    *,
    judge: str = "judge",
    depth: int = 10,
    systems: Sequence[str] = (),
    dataset: str | None = None,
    max_grade: int | None = None,
    folders: Collection[PathLike] | None = None,
) -> int:
    """Put the grades of a spreadsheet into a judge's file.

    Args:
        target: An experiment, or a dataset: its name, its folder or its ``dataset.yaml``.
        spreadsheet: A file of :meth:`DocumentsToJudge.to_spreadsheet` with grades filled in.
        judge: Who judged.
        depth: The depth of the pool; documents below it in a list are known, too.
        systems: Names, beside the baseline; empty = all.
        dataset: One of several datasets of the experiment.
        max_grade: The greatest grade; by default the greatest of the judgments.
        folders: Where named datasets live; by default as for :func:`gate`.

    Returns:
        How many grades the sheet has.

    Raises:
        DataError: The sheet breaks a rule; nothing is written then.
        FusionBenchError: Another file breaks a rule, or a name is unknown.
    """
    options = JudgeOptions(judge, depth, max_grade=max_grade)
    judged = _read_systems(target, systems, dataset, folders)
    return import_sheet(judged, Path(spreadsheet), options)[1]


def _require_positive(name: str, number: int) -> None:
    if number < 1:
        raise ConfigError(f"{name}: at least 1 is needed, not {number}")


def _read_systems(
    target: PathLike,
    systems: Sequence[str],
    dataset: str | None,
    folders: Collection[PathLike] | None,
) -> JudgedSystems:
    path = Path(target)
    places = find_folders(folders, path if is_experiment(path) else None)
    return read_judged_systems(path, folders=places, systems=systems, dataset=dataset)

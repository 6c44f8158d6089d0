"""New data: datasets, queries from a log, pulled lists, scores of a reranker, judgments."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fusion_bench.api.inputs import (
    Roles,
    check_space_names,
    is_path,
    list_measures,
    locate_dataset,
    read_qrels,
)
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.records import ScoreSpace
from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import PulledDataset, pull_dataset
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.starter import RerankFile, StarterInput
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.experiment.overrides import merge_mappings
from fusion_bench.importers.new_dataset import NewDataset, make_new_dataset
from fusion_bench.io.dataset_config import FileSettings, find_folders
from fusion_bench.judging import judge_work, pools
from fusion_bench.judging.agreement import (
    AgreementReport,
    JudgeGrades,
    measure_agreement,
    read_judges,
)
from fusion_bench.judging.estimate import GradeEstimate, estimate_experiment
from fusion_bench.judging.judge_files import render_sheet
from fusion_bench.judging.judge_values import draw_sample, replace_measures
from fusion_bench.judging.next_documents import JudgingPlan, describe_ends, describe_rest
from fusion_bench.judging.options import JudgeOptions, OrderName
from fusion_bench.judging.query_log import QuerySample, read_query_log, sample_queries
from fusion_bench.models.options import RerankOptions
from fusion_bench.models.rerank_run import WrittenList, score_list
from fusion_bench.stats.agreement import Weighting
from fusion_bench.util.files import write_atomic
from fusion_bench.util.formatting import Columns, TableView, pluralize

T = TypeVar("T")


def outside_event_loop(work: Callable[[], T]) -> T:
    """The result of work that runs an event loop of its own, also from within another."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # no loop runs here
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


PathLike = str | os.PathLike[str]


def new_dataset(
    folder: PathLike,
    runs: Mapping[str, PathLike],
    *,
    qrels: PathLike,
    queries: PathLike | None = None,
    documents: PathLike | None = None,
    rerankers: Mapping[str, PathLike] | None = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    roles: Roles | None = None,
    binary_relevance: int = 1,
    check: bool = True,
    **options: Any,  # noqa: ANN401 - the models check them
) -> NewDataset:
    """Make a checked dataset of your own files, and an experiment on it.

    Args:
        folder: The folder to write.
        runs: Files of two ranked lists or more, by name.
        qrels: File of judgments.
        queries: JSON Lines: id, text, type, group, split.
        documents: JSON Lines: id, title, text.
        rerankers: Files of rerankers' scores, by name.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        roles: Role or roles of a run by its name, as for ``compare``.
        binary_relevance: Grade from which binary measures count.
        check: Whether to check what the files hold, beyond reading lists and judgments.
        options: How the files are read, as for ``compare``.

    Raises:
        UnknownNameError: A score space, or the list that it is given for, is unknown.
        FusionBenchError: A file breaks a rule, or the folder holds a dataset already.
    """
    lists, spaces = rerankers or {}, score_spaces or {}
    check_space_names(spaces, lists)
    given = StarterInput(
        settings=FileSettings.from_options(options, [*runs, *lists]),
        qrels=Path(qrels),
        runs={name: Path(path) for name, path in runs.items()},
        rerankers={n: RerankFile(Path(path), spaces.get(n)) for n, path in lists.items()},
        queries=None if queries is None else Path(queries),
        measures=DEFAULT_MEASURES,
        roles=roles or {},
        binary_relevance=binary_relevance,
        documents=None if documents is None else Path(documents),
    )
    return make_new_dataset(given, Path(folder), check=check)


def sample_log(
    log: PathLike,
    *,
    n: int = 200,
    column: str | None = None,
    drop_personal: bool = False,
    keep_similar: bool = False,
    seed: int = 0,
) -> QuerySample:
    """Draw queries from a log: as many that many ask as that few ask.

    Args:
        log: One query a line, JSON Lines, CSV or TSV.
        n: Queries to draw.
        column: Column or key of the text; by default ``query``, ``text`` and other usual names.
        drop_personal: Replace queries with personal data, which are flagged otherwise.
        keep_similar: Draw queries that resemble another one, too.
        seed: Another one draws another sample.

    Raises:
        FusionBenchError: The log cannot be read or holds no query, or ``n`` is below 1.
    """
    read = read_query_log(Path(log), column)
    return sample_queries(
        read, n, seed=seed, drop_personal=drop_personal, keep_similar=keep_similar
    )


def pull(
    engine: str,
    queries: PathLike | Mapping[str, str],
    out: PathLike,
    *,
    settings: Mapping[str, object] | None = None,
    config: PathLike | None = None,
    name: str | None = None,
    depth: int = 100,
    texts: bool = False,
    all_texts: bool = False,
    vectors: PathLike | None = None,
    skip_failed: bool = False,
    start_over: bool = False,
) -> PulledDataset:
    """Pull each leg of a hybrid search alone, and the engine's own fused answer, as a dataset.

    What an interrupted pull has asked is not asked again. Works inside a running event loop too.

    Args:
        engine: Name of the engine, such as ``elasticsearch``, ``pgvector``, ``http`` or ``python``.
        queries: JSON Lines with the id and the text of each query, or ``{id: text}``.
        out: The dataset's folder.
        settings: Keys of the engine: its place, ``legs``, ``fused``.
        config: YAML file with the same keys, over which ``settings`` are put.
        name: The dataset's name; by default the folder's.
        depth: Most documents per query and list.
        texts: Whether the texts of the documents that are returned are pulled too.
        all_texts: Whether those of all documents of the index are, where the engine lists them.
        vectors: File with the vectors of the queries, for legs that name none.
        skip_failed: Leave out a query of which a list fails for good.
        start_over: Forget the answers of an unfinished pull, and replace a dataset that an earlier
            pull wrote.

    Returns:
        The folder, the record of the pull, and the files.

    Raises:
        FusionBenchError: An input or an option breaks a rule, or the engine failed.
    """
    given = {} if config is None else dict(read_yaml(Path(config)).data)
    connector = build_connector(engine, merge_mappings(given, settings or {}))
    known = dict(queries) if isinstance(queries, Mapping) else Path(queries)
    options = PullOptions(
        out=Path(out),
        name=name,
        depth=depth,
        texts=texts,
        all_texts=all_texts,
        vectors=None if vectors is None else Path(vectors),
        skip_failed=skip_failed,
        start_over=start_over,
    )
    return outside_event_loop(lambda: pull_dataset(connector, known, options))


def rerank(
    dataset: PathLike,
    system: str,
    provider: str | None = None,
    *,
    settings: Mapping[str, object] | None = None,
    fallbacks: Sequence[str] = (),
    config: PathLike | None = None,
    experiment: PathLike | None = None,
    depth: int = 50,
    split: str | None = None,
    out: PathLike | None = None,
    store: PathLike = "reports/rerank/scores.sqlite",
    max_cost: float | None = None,
    folders: Collection[PathLike] | None = None,
) -> WrittenList:
    """Rerank a system's top candidates and save the scores for offline evaluation.

    Scores that the store has are not paid for twice. Works inside a running event loop too.

    Args:
        dataset: A dataset's name, folder or ``dataset.yaml``; it names the texts.
        system: Whose candidates: a system of the experiment, a run, or a fusion method.
        provider: A provider of ``config``, or a method such as ``cohere``, ``tei``, ``onnx``.
        settings: Keys of the provider, such as ``{"model": "rerank-2"}``.
        fallbacks: Providers to ask when the first fails.
        config: YAML file with providers, chain and settings.
        experiment: Experiment that defines the system.
        depth: Candidates per query and trial.
        split: Only queries of this split.
        out: The list (``.jsonl``); by default ``rerank/SYSTEM-PROVIDER.jsonl`` beside the
            ``dataset.yaml``.
        store: SQLite file that keeps the scores.
        max_cost: Stop before the price exceeds this.
        folders: Where named datasets live.

    Returns:
        The list's path, its provenance, and the lines that make it part of the dataset.

    Raises:
        FusionBenchError: An input or an option breaks a rule, or nothing could be scored.
    """
    options = RerankOptions(
        dataset=str(dataset),
        system=system,
        provider=provider,
        fallbacks=fallbacks,
        config=None if config is None else Path(config),
        overrides=[
            f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"
            for key, value in (settings or {}).items()
        ],
        experiment=None if experiment is None else Path(experiment),
        depth=depth,
        split=split,
        out=None if out is None else Path(out),
        store=Path(store),
        max_cost=max_cost,
    )
    path = locate_dataset(dataset, folders)
    return outside_event_loop(lambda: score_list(path, options, lambda *_: None))


@dataclass(frozen=True, eq=False, repr=False)
class DocumentsToJudge(TableView):
    """Documents that a judge is asked for, in order.

    Attributes:
        work: Systems, options and the judge's task.
    """

    work: judge_work.JudgeWork

    @cached_property
    def documents(self) -> tuple[pools.PooledDocument, ...]:
        """The documents; those that the judge has judged are left out."""
        return tuple(self.work.documents())

    @property
    def plan(self) -> JudgingPlan | None:
        """Return what could still change the comparison; None for a pool."""
        return self.work.plan

    @property
    def is_decided(self) -> bool | None:
        """Whether no grades could change the comparison's answer; None of a pool."""
        return None if self.plan is None else self.plan.is_decided

    def to_spreadsheet(self, path: str | os.PathLike[str]) -> Path:
        """Write the documents with their texts and empty grades, for :func:`import_grades`.

        Raises:
            FusionBenchError: The file cannot be written.
        """
        texts = self.work.query_texts(), self.work.document_texts()
        sheet = render_sheet(self.documents, *texts, self.work.task.file.judgments)
        return write_atomic(Path(path), sheet.encode())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``fusion-bench judge --json`` prints it."""
        return judge_work.describe_work(self.work)

    def _summary(self) -> str:
        count = pluralize(len(self.documents), "document")
        if self.plan is None:
            return f"DocumentsToJudge({count}, grades 0 to {self.work.task.greatest})"
        lines = [describe_ends(self.plan)]
        if self.plan.ignored_queries:
            ignored = pluralize(self.plan.ignored_queries, "query")
            lines.append(f"Without any judgment, and left out: {ignored}. Judge their pool first.")
        return "\n".join([*lines, describe_rest(self.plan, len(self.documents))])

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a document."""
        rows, effects = self.documents[:limit], judge_work.list_effects(self.work)
        columns: dict[str, list[Any]] = {
            "query": [each.query for each in rows],
            "document": [each.document for each in rows],
            "best_rank": [each.best_rank for each in rows],
        }
        if self.plan is not None:
            columns["effect"] = [effects[each.pair] for each in rows]
        return columns


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
    options = JudgeOptions(
        judge=judge,
        budget=budget,
        measure=measure,
        baseline=baseline,
        candidate=candidate,
        max_grade=max_grade,
    )
    return DocumentsToJudge(
        judge_work.open_work(_read_systems(target, systems, dataset, folders), options)
    )


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
    if order not in pools.ORDERS:
        raise ConfigError(f"order: {order!r} is not one of {', '.join(pools.ORDERS)}")
    judged = _read_systems(target, systems, dataset, folders)
    options = JudgeOptions(judge=judge, depth=depth, order=order, seed=seed, max_grade=max_grade)
    return DocumentsToJudge(judge_work.open_work(judged, options, queries=queries))


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
    options = JudgeOptions(judge=judge, depth=depth, max_grade=max_grade)
    judged = _read_systems(target, systems, dataset, folders)
    return judge_work.import_sheet(judged, Path(spreadsheet), options)[1]


def _require_positive(name: str, number: int) -> None:
    if number < 1:
        raise ConfigError(f"{name}: at least 1 is needed, not {number}")


def _read_systems(
    target: PathLike,
    systems: Sequence[str],
    dataset: str | None,
    folders: Collection[PathLike] | None,
) -> pools.JudgedSystems:
    path = Path(target)
    places = find_folders(folders, path if pools.is_experiment(path) else None)
    return pools.read_judged_systems(path, folders=places, systems=systems, dataset=dataset)


def agreement(
    judges: object,
    *,
    people: Sequence[str] = (),
    binary_relevance: int | None = None,
    weighting: Weighting = "none",
    folders: Collection[PathLike] | None = None,
) -> AgreementReport:
    """Cohen's κ of each two judges, graded and binary, with 95 % intervals over queries.

    Args:
        judges: A dataset whose ``dataset.yaml`` names judges: its name, its folder or that file;
            or ``{name: grades}``, the grades in any form of judgments.
        people: Judges that the others are compared with. Default: those of kind ``human``; where
            there are none, every two judges are compared.
        binary_relevance: Grade from which a document is relevant. Default: the dataset's, else 1.
        weighting: ``linear`` or ``quadratic``: also κ with disagreements weighted by distance.
        folders: Where named datasets live; by default ``datasets`` here and in the folders above.

    Raises:
        FusionBenchError: A file breaks a rule, a name is unknown, or there are no two judges who
            graded the same document.
    """
    relevance = 1
    if is_path(judges):
        grades, relevance = read_judges(locate_dataset(judges, folders))
    elif isinstance(judges, Mapping):
        grades = {str(name): JudgeGrades(read_qrels(given)) for name, given in judges.items()}
    else:
        raise DataError(f"judges: give a dataset or {{name: grades}}, not {type(judges).__name__}")
    return measure_agreement(
        grades,
        binary_relevance=relevance if binary_relevance is None else binary_relevance,
        weighting=weighting,
        references=people,
    )


def estimate(
    experiment: PathLike,
    *,
    people: str,
    machine: str,
    systems: Sequence[str] = (),
    measures: object = None,
    dataset: str | None = None,
    folders: Collection[PathLike] | None = None,
) -> GradeEstimate:
    """Differences under people's grades, from few of theirs and many of a machine's.

    Prediction-powered inference: the intervals hold whatever the machine's bias, where people's
    queries are a random sample and show it. A row of ``few_changes`` has no such interval.

    Args:
        experiment: The experiment's file.
        people: The judge of kind ``human``, who graded a random sample of the queries.
        machine: The judge of kind ``machine``, who graded all queries; ``qrels`` = the judgments.
        systems: Names, beside the baseline; empty = all.
        measures: One or several, the first decides; by default the experiment's.
        dataset: One of several datasets of the experiment.
        folders: Where named datasets live; by default as for :func:`gate`.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or people's
            queries are not declared as a random sample.
    """
    parsed, source, places = _open_experiment(experiment, measures, folders)
    return estimate_experiment(
        *(parsed, source),
        people=people,
        machine=machine,
        folders=places,
        systems=systems,
        dataset=dataset,
    )


def draw_queries(
    experiment: PathLike,
    *,
    machine: str,
    n: int,
    seed: int = 0,
    dataset: str | None = None,
    folders: Collection[PathLike] | None = None,
) -> tuple[str, ...]:
    """Ids of queries for people to judge: a random sample of those that a machine graded.

    Args:
        experiment: The experiment's file.
        machine: The judge of kind ``machine``, who graded all queries; ``qrels`` = the judgments.
        n: How many; a larger number adds to the sample of a smaller one.
        seed: Another one draws another sample.
        dataset: One of several datasets of the experiment.
        folders: Where named datasets live; by default as for :func:`gate`.

    Raises:
        FusionBenchError: A name is unknown, or there are not so many queries.
    """
    parsed, source, places = _open_experiment(experiment, None, folders)
    return draw_sample(
        *(parsed, source), machine=machine, count=n, seed=seed, folders=places, dataset=dataset
    )


def _open_experiment(
    experiment: PathLike, measures: object, folders: Collection[PathLike] | None
) -> tuple[Experiment, Source, list[Path]]:
    """The experiment with these measures, its source, and the folders of named datasets."""
    path = Path(experiment)
    names = [] if measures is None else list_measures(measures)
    parsed, source = read_experiment(path, overrides=replace_measures(names))
    return parsed, source, find_folders(folders, path)

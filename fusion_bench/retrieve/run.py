"""``fusion-bench retrieve`` as a function: texts in, a run on disk."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusion_bench.retrieve.answers.collect import Usage
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.retrieve.common import Progress
from fusion_bench.retrieve.methods._base import Retriever, SearchContext
from fusion_bench.retrieve.run_file import RunTarget, check_target, write_rankings
from fusion_bench.retrieve.texts import TextFiles, read_texts


@dataclass(frozen=True)
class RetrieveOptions:
    """What is searched, and where the run goes.

    Attributes:
        files: The texts.
        name: The run's name; None = the method's.
        out: The run; None = ``runs/NAME.trec.gz`` beside the ``dataset.yaml``.
        replace: Whether a run of that name may be replaced.
        depth: Most documents per query.
        store: The answer store; None = in memory.
    """

    files: TextFiles
    name: str | None = None
    out: Path | None = None
    replace: bool = False
    depth: int = 100
    store: Path | None = None


@dataclass(frozen=True)
class WrittenRun:
    """A run on disk.

    Attributes:
        path: The run.
        name: Its name.
        settings: The method and its settings.
        documents: Documents that were searched.
        queries: Queries that were searched for.
        rows: Documents that were found, over all queries.
        empty: Queries that found nothing.
        usage: What was asked of models, by what it was.
        dataset: The ``dataset.yaml`` that names the run now; None = none does.
        line: The line of a ``dataset.yaml`` that names it.
    """

    path: Path
    name: str
    settings: dict[str, Any]
    documents: int
    queries: int
    rows: int
    empty: tuple[str, ...]
    usage: dict[str, Usage]
    dataset: Path | None
    line: str


def retrieve_run(
    retriever: Retriever, options: RetrieveOptions, on_progress: Progress = lambda *_: None
) -> WrittenRun:
    """Search for every query, and write the run.

    Args:
        retriever: How.
        options: What is searched, and where the run goes.
        on_progress: Called with what is done now, the steps done, and all steps.

    Raises:
        FusionBenchError: An input or an option breaks a rule, a model failed, or a file cannot be
            written. What models answered stays in the store.
    """
    name = options.name or retriever.name
    target = RunTarget(
        options.files.dataset, name, retriever.roles, options.out, replace=options.replace
    )
    path = target.path  # refused before anything is read
    on_progress("reading", 0, 1)
    texts = read_texts(options.files)
    check_target(target, texts)
    with closing(AnswerStore(options.store)) as store:
        context = SearchContext(store, on_progress)
        rankings = retriever.search(texts, options.depth, context)
    on_progress("writing", 0, 1)
    is_named = write_rankings(target, rankings)
    return WrittenRun(
        path=path,
        name=name,
        settings=retriever.describe(),
        documents=len(texts.documents),
        queries=len(texts.queries),
        rows=sum(map(len, rankings.values())),
        empty=tuple(query for query, ranking in rankings.items() if not ranking),
        usage=context.usage,
        dataset=options.files.dataset if is_named else None,
        line=target.line,
    )

"""A user's own files → a checked dataset and an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fusion_bench.datasets.dataset_findings import Finding, find_in_dataset
from fusion_bench.datasets.unjudged_findings import find_in_lists
from fusion_bench.evaluation.starter.comparison import (
    StarterInput,
    compare_starter_systems,
    read_starter_lists,
)
from fusion_bench.evaluation.starter.saved_files import (
    SavedBy,
    check_free,
    save_starter,
    save_uncompared,
)
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_qrels
from fusion_bench.io.specs.dataset_name import make_dataset_name
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.table_view import Columns, TableView, list_columns

COMMAND: Final = SavedBy("fusion-bench dataset new", "DIR")


@dataclass(frozen=True, repr=False)
class NewDataset(TableView):
    """A dataset that was made of files.

    Attributes:
        name: Its name.
        findings: What each check found.
        notes: What was guessed of the lists.
        files: What was written, the ``dataset.yaml`` and the ``experiment.yaml`` first.
        is_judged: Whether it has judgments.
    """

    name: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    is_judged: bool

    def _summary(self) -> str:
        checks = pluralize(len(self.findings), "check")
        return f"NewDataset({self.name!r}, {checks}: {self.files[0]})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a check."""
        return list_columns(Finding, self.findings[:limit])


def make_new_dataset(
    given: StarterInput,
    folder: Path,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    *,
    check: bool = True,
) -> NewDataset:
    """Check files, and write the dataset that they make, with the starter systems' experiment.

    Without judgments only what needs none is checked.

    Args:
        given: The files.
        folder: Where to; created if missing. Files from elsewhere are copied there.
        progress: Called as the work goes on.
        check: Whether to check what the files hold, beyond reading lists and judgments.

    Raises:
        ConfigError: The folder holds a dataset, or there are too few lists.
        DataError: A file breaks a rule.
        FusionBenchError: The folder cannot be written to.
    """
    check_free(folder, COMMAND.option)
    if not check:
        return _make_unchecked(given, folder, progress)
    documents = None
    if given.documents is not None:
        known = load_documents(given.documents)
        documents = {name: document.text for name, document in known.items()}
    if given.qrels is None:
        return _make_unjudged(given, documents, folder, progress)
    given = replace(given, name=name_folder(folder))
    done = compare_starter_systems(given, progress, samples_ties=False)
    progress("checking the dataset", 0, 1)
    findings = find_in_dataset(done.dataset, documents, done.report.collections[0])
    files = save_starter(given, done, folder, COMMAND)
    return NewDataset(done.dataset.name, tuple(findings), done.notes, tuple(files), is_judged=True)


def _make_unjudged(
    given: StarterInput,
    documents: dict[str, str] | None,
    folder: Path,
    progress: Callable[[str, int, int], None],
) -> NewDataset:
    lists = read_starter_lists(given, progress)
    queries = None if given.queries is None else load_queries(given.queries)
    progress("checking the dataset", 0, 1)
    findings = find_in_lists(lists.runs, lists.rerankers, queries, documents)
    name = name_folder(folder)
    files = save_uncompared(given, lists, name, folder, COMMAND)
    return NewDataset(name, tuple(findings), lists.notes, tuple(files), is_judged=False)


def _make_unchecked(
    given: StarterInput, folder: Path, progress: Callable[[str, int, int], None]
) -> NewDataset:
    lists = read_starter_lists(given, progress)
    if given.qrels is not None:
        load_qrels(given.qrels, layout=given.qrels_layout)
    name, is_judged = name_folder(folder), given.qrels is not None
    files = save_uncompared(given, lists, name, folder, COMMAND)
    return NewDataset(name, (), lists.notes, tuple(files), is_judged)


def name_folder(folder: Path) -> str:
    """A dataset's name from that of its folder: other characters become dashes."""
    return make_dataset_name(resolve_path(folder).name, "dataset")

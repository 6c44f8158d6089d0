"""A user's own files → a checked dataset with an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.query_groups import QueryGroups, find_query_groups, normalize_text
from fusion_bench.data.run import Run
from fusion_bench.evaluation import starter
from fusion_bench.evaluation.report_records import Collection as ReportCollection
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import make_dataset_name
from fusion_bench.io.json_objects import load_documents, load_queries
from fusion_bench.io.load_records import load_stated_qrels
from fusion_bench.stats.power import estimate_spread, plan_rule, sidak_tail
from fusion_bench.util.files import resolve_path
from fusion_bench.util.formatting import (
    Columns,
    TableView,
    format_number,
    format_percent,
    list_columns,
    pluralize,
)

#: What a check says: nothing to do; look at it; or a file that it needs was not given.
Status: TypeAlias = Literal["ok", "look", "not checked"]
#: Below this share of the relevant documents in any list, what the lists lack limits every fusion.
LOW_COVERAGE = 0.5
#: True differences that are planned for.
DIFFERENCES = (0.01, 0.02, 0.05)
#: Queries of which the smallest of these differences should be shown, or the dataset is small.
SMALL = 0.02


@dataclass(frozen=True)
class DatasetFinding:
    """Result of one check.

    Attributes:
        check: Its name.
        status: Whether there is something to look at.
        text: What was found, in one sentence.
        advice: What to do; empty where nothing is to be done.
    """

    check: str
    status: Status
    text: str
    advice: str = ""


def _check_coverage(dataset: Dataset, runs: AlignedRuns) -> Iterator[DatasetFinding]:
    """Queries that a list answers, and relevant documents that any list returns."""
    judged = len(runs.queries)
    answered = {name: int((runs.lengths[i] > 0).sum()) for i, name in enumerate(runs.sources)}
    few = [name for name, count in answered.items() if count < judged]
    shares = ", ".join(f"{name} {count:,}" for name, count in answered.items())
    text = f"Of {pluralize(judged, 'judged query')} the lists answer: {shares}."
    advice = "Add the missing answers: a query without any counts 0." if few else ""
    yield DatasetFinding("queries in the lists", "look" if few else "ok", text, advice)
    is_relevant = runs.grades >= dataset.spec.binary_relevance
    total = int((dataset.qrels.grades >= dataset.spec.binary_relevance).sum())
    if not total:
        yield DatasetFinding(
            "relevant documents in the lists",
            "look",
            "No document is judged relevant.",
            "Check the grades, and the option --binary-relevance.",
        )
        return
    share_by_list = {
        name: int((is_relevant & (runs.ranks[i] > 0)).sum()) / total
        for i, name in enumerate(runs.sources)
    }
    union = int((is_relevant & (runs.ranks > 0).any(axis=0)).sum()) / total
    each = ", ".join(f"{name} {format_percent(share)}" for name, share in share_by_list.items())
    text = (
        f"Of {pluralize(total, 'relevant document')} the lists return: {each}; together "
        f"{format_percent(union)}."
    )
    is_low = union < LOW_COVERAGE
    advice = "Retrieve deeper lists: no fusion finds what no list returns." if is_low else ""
    yield DatasetFinding(
        "relevant documents in the lists", "look" if is_low else "ok", text, advice
    )


def _check_duplicate_queries(groups: QueryGroups) -> DatasetFinding:
    linked = int(groups.sizes.sum())
    if not linked:
        return DatasetFinding("duplicate queries", "ok", "No two queries depend on each other.")
    link = groups.links[0]
    pair = f"{groups.queries[link.first]!r} and {groups.queries[link.second]!r}: {link.reason}"
    return DatasetFinding(
        "duplicate queries",
        "look",
        f"{pluralize(linked, 'query')} depend on others (for example {pair}).",
        "Counted singly, they make intervals too narrow. Identical ones are one group unless too "
        "few groups remain; for the others write 'groups: auto' into dataset.yaml.",
    )


def _check_duplicate_documents(documents: Mapping[str, str] | None) -> DatasetFinding:
    """Texts that two documents share.

    Args:
        documents: Id → text of every document; None = not given.
    """
    check = "duplicate documents"
    if documents is None:
        return DatasetFinding(
            check, "not checked", "The texts are not known.", "Give --documents FILE."
        )
    counts = Counter(normalize_text(text) for text in documents.values())
    repeated = {text for text, count in counts.items() if count > 1}
    if not repeated:
        return DatasetFinding(check, "ok", f"{pluralize(len(documents), 'text')}, all different.")
    copies = [name for name, text in documents.items() if normalize_text(text) in repeated]
    return DatasetFinding(
        check,
        "look",
        f"{pluralize(len(copies), 'document')} share {pluralize(len(repeated), 'text')} (for "
        f"example {copies[0]!r}).",
        "A copy of a relevant document counts as not relevant: judge all copies, or drop them.",
    )


def _check_dead_ids(
    vocabularies: Mapping[str, Collection[str]], documents: Collection[str] | None
) -> DatasetFinding:
    """Ids in judgments or lists that no document has.

    Args:
        vocabularies: Ids of documents by the name of what holds them.
        documents: Ids of every document; None = not given.
    """
    check = "dead ids"
    if documents is None:
        return DatasetFinding(
            check,
            "not checked",
            "The ids of the documents are not known.",
            "Give --documents FILE.",
        )
    known = set(documents)
    dead = {name: len(set(ids) - known) for name, ids in vocabularies.items()}
    counts = {name: count for name, count in dead.items() if count}
    if not counts:
        return DatasetFinding(check, "ok", "Every judged or returned document has a text.")
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    return DatasetFinding(
        check,
        "look",
        f"Documents without a text: {listed}.",
        "Were they deleted since, or do the files use two kinds of ids? Renew the older file.",
    )


def _check_leaks(dataset: Dataset, groups: QueryGroups) -> DatasetFinding:
    """Queries of one group in two splits: what is tuned on one part is tested on the other."""
    check = "leaks between splits"
    split_of = {q: dataset.queries[q].split for q in groups.queries if q in dataset.queries}
    if len({split for split in split_of.values() if split}) < 2:
        return DatasetFinding(check, "not checked", "The queries have fewer than two splits.")
    leaks = [
        (first, second)
        for link in groups.links
        for first, second in [(groups.queries[link.first], groups.queries[link.second])]
        if split_of.get(first) and split_of.get(second) and split_of[first] != split_of[second]
    ]
    if not leaks:
        return DatasetFinding(check, "ok", "No query of one split resembles one of another.")
    first, second = leaks[0]
    return DatasetFinding(
        check,
        "look",
        f"{pluralize(len(leaks), 'pair')} of similar queries stand in two splits (for example "
        f"{first!r} in {split_of[first]}, {second!r} in {split_of[second]}).",
        "Move each pair into one split, or give both the same 'group'.",
    )


def _check_power(report: ReportCollection) -> DatasetFinding:
    """Queries that typical differences need, from the spread of the starter systems."""
    check = "number of queries"
    pairs = {
        row.name: report.table.pair(row.name, report.primary_measure)
        for row in report.ranked_systems
    }
    other = next((name for name, pair in pairs.items() if pair.changed), None)
    if other is None:
        return DatasetFinding(check, "not checked", "No two systems differ, which tells no spread.")
    spread = estimate_spread(pairs[other].difference)
    rule = plan_rule("better or worse", sidak_tail(1), spread, DIFFERENCES)
    if rule.detectable is None:
        return DatasetFinding(check, "not checked", f"{other} and {report.baseline} do not differ.")
    needs = ", ".join(
        f"{format_number(plan.difference)} needs {plan.needed or 'more than can be had'}"
        for plan in rule.differences
    )
    is_small = rule.detectable > SMALL
    text = (
        f"{pluralize(spread.queries or 0, 'evaluated query')} show a difference of "
        f"{format_number(rule.detectable)} in {report.primary_measure} with probability .8 "
        f"({other} against {report.baseline}); {needs}."
    )
    advice = "Judge more queries, or look for large differences only." if is_small else ""
    return DatasetFinding(check, "look" if is_small else "ok", text, advice)


def _check_queries(
    runs: Mapping[str, Run], queries: Collection[str] | None
) -> Iterator[DatasetFinding]:
    """Queries that a list answers, and those without a text."""
    answered = {name: set(run.queries) for name, run in runs.items()}
    known = set().union(*answered.values()) if queries is None else set(queries)
    counts = {name: len(known & ids) for name, ids in answered.items()}
    few = any(count < len(known) for count in counts.values())
    shares = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    yield DatasetFinding(
        "queries in the lists",
        "look" if few else "ok",
        f"Of {pluralize(len(known), 'query')} the lists answer: {shares}.",
        "Add the missing answers: a query without any counts 0." if few else "",
    )
    if queries is None:
        yield DatasetFinding(
            "texts of the queries",
            "not checked",
            "The texts are not known, and a judge reads them.",
            "Give --queries FILE.",
        )
        return
    missing = sorted(set().union(*answered.values()) - known)
    text = "Every query of the lists has a text."
    if missing:
        text = f"{pluralize(len(missing), 'query')} without a text (for example {missing[0]!r})."
    advice = "Do the files use two kinds of ids? Renew the older file." if missing else ""
    yield DatasetFinding("texts of the queries", "look" if missing else "ok", text, advice)


COMMAND: Final = starter.SavedBy("fusion-bench dataset new", "DIR")


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
    findings: tuple[DatasetFinding, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    is_judged: bool

    def _summary(self) -> str:
        checks = pluralize(len(self.findings), "check")
        return f"NewDataset({self.name!r}, {checks}: {self.files[0]})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a check."""
        return list_columns(DatasetFinding, self.findings[:limit])


def make_new_dataset(
    given: starter.StarterInput,
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
    starter.check_free(folder, COMMAND.option)
    if not check:
        lists = starter.read_starter_lists(given, progress)
        if given.qrels is not None:
            load_stated_qrels(given.qrels, given.settings)
        name, is_judged = _name_folder(folder), given.qrels is not None
        files = starter.save_uncompared(given, lists, name, folder, COMMAND)
        return NewDataset(name, (), lists.notes, tuple(files), is_judged)
    documents = None
    if given.documents is not None:
        known = load_documents(given.documents)
        documents = {name: document.text for name, document in known.items()}
    if given.qrels is None:
        return _make_unjudged(given, documents, folder, progress)
    given = replace(given, name=_name_folder(folder))
    done = starter.compare_starter_systems(given, progress, is_shown=False)
    progress("checking the dataset", 0, 1)
    dataset = done.dataset
    runs = align(dataset.qrels, [*dataset.runs.values()])
    queries = dataset.qrels.queries
    groups = find_query_groups(queries, dataset.declared, [*dataset.runs.values()], dataset.qrels)
    vocabularies = {
        name: run.vocabulary for name, run in {**dataset.runs, **dataset.rerankers}.items()
    }
    findings = [
        *_check_coverage(dataset, runs),
        _check_duplicate_queries(groups),
        _check_duplicate_documents(documents),
        _check_dead_ids({"judgments": dataset.qrels.vocabulary, **vocabularies}, documents),
        _check_leaks(dataset, groups),
        _check_power(done.report.collections[0]),
    ]
    files = starter.save_starter(given, done, folder, COMMAND)
    return NewDataset(done.dataset.name, tuple(findings), done.notes, tuple(files), is_judged=True)


def _make_unjudged(
    given: starter.StarterInput,
    documents: dict[str, str] | None,
    folder: Path,
    progress: Callable[[str, int, int], None],
) -> NewDataset:
    lists = starter.read_starter_lists(given, progress)
    queries = None if given.queries is None else load_queries(given.queries)
    progress("checking the dataset", 0, 1)
    vocabularies = {name: run.vocabulary for name, run in {**lists.runs, **lists.rerankers}.items()}
    findings = [
        *_check_queries(lists.runs, queries),
        _check_duplicate_documents(documents),
        _check_dead_ids(vocabularies, documents),
    ]
    name = _name_folder(folder)
    files = starter.save_uncompared(given, lists, name, folder, COMMAND)
    return NewDataset(name, tuple(findings), lists.notes, tuple(files), is_judged=False)


def _name_folder(folder: Path) -> str:
    """A dataset's name from that of its folder: other characters become dashes."""
    return make_dataset_name(resolve_path(folder).name, "dataset")

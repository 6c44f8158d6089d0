"""From files of ranked lists to a report on the starter systems, without any YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from fusion_bench.config.files.yaml_source import Source
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.in_memory import make_dataset, make_experiment, name_dataset
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.run_experiment import Progress, ignore_progress, run_on_datasets
from fusion_bench.evaluation.starter.score_space import guess_score_space
from fusion_bench.evaluation.starter.systems import StarterSystems, build_starter_systems
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.file_layout import DEFAULT_LAYOUT, FileLayout
from fusion_bench.io.json_objects import load_known_queries
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.provenance import read_meta

#: Names stand in YAML, in tables and in file names.
NAME = re.compile(r"\w[\w .+-]*")


class RerankFile(NamedTuple):
    """A rerank list's file; without a score space, its values decide.

    Attributes:
        path: The file.
        score_space: What its numbers mean.
    """

    path: Path
    score_space: ScoreSpace | None = None


@dataclass(frozen=True)
class StarterInput:
    """The files that are compared, and how.

    Attributes:
        qrels: File of judgments; None = nothing is judged yet, and nothing can be compared.
        runs: Run files by name.
        rerankers: Rerank lists by name.
        queries: File of the queries' texts, types, groups and splits; None = nothing is known.
        measures: Measure names, the primary one first.
        binary_relevance: Grade from which binary measures count.
        qrels_layout: How the judgments' file names its columns.
        run_layout: How the files of all lists do.
        documents: File of the documents' texts, which a saved dataset names; None = not known.
        name: The dataset's name; None = that of the judgments' file.
    """

    qrels: Path | None
    runs: Mapping[str, Path]
    rerankers: Mapping[str, RerankFile]
    measures: Sequence[str]
    queries: Path | None = None
    binary_relevance: int = 1
    qrels_layout: FileLayout = DEFAULT_LAYOUT
    run_layout: FileLayout = DEFAULT_LAYOUT
    documents: Path | None = None
    name: str | None = None


class StarterLists(NamedTuple):
    """The lists of the files, and the systems that are worth trying on them.

    Attributes:
        runs: Run by name.
        rerankers: Rerank list by name.
        spaces: What the numbers of each rerank list mean.
        starter: The systems.
        notes: What their names stand for, what was guessed, and what was left out.
    """

    runs: dict[str, Run]
    rerankers: dict[str, Run]
    spaces: dict[str, ScoreSpace]
    starter: StarterSystems
    notes: tuple[str, ...]


class StarterComparison(NamedTuple):
    """What was compared, and what was found.

    Attributes:
        report: As of an experiment.
        dataset: The lists.
        source: The experiment, as its YAML would say it.
        notes: What the systems' names stand for, what was guessed, and what was left out.
    """

    report: Report
    dataset: Dataset
    source: Source
    notes: tuple[str, ...]


def read_starter_lists(given: StarterInput, progress: Progress = ignore_progress) -> StarterLists:
    """Read the lists, and build the starter systems.

    Args:
        given: The files; judgments are not read.
        progress: Called before the work.

    Raises:
        ConfigError: A name cannot be used, or there are too few lists.
        DataError: A file breaks a rule.
    """
    _check_names(given)
    progress("reading the lists", 0, 1)
    layout = given.run_layout
    runs = {name: load_run(path, name=name, layout=layout) for name, path in given.runs.items()}
    rerankers = {
        name: load_run(file.path, name=name, score_space=file.score_space, layout=layout)
        for name, file in given.rerankers.items()
    }
    spaces, guesses = _score_spaces(given, rerankers)
    starter = build_starter_systems(list(runs.values()), list(rerankers.values()))
    return StarterLists(runs, rerankers, spaces, starter, (*starter.notes, *guesses))


def compare_starter_systems(
    given: StarterInput, progress: Progress = ignore_progress, *, samples_ties: bool = True
) -> StarterComparison:
    """Compare the starter systems on lists that no dataset describes.

    Args:
        given: The files.
        progress: Called as the work goes on.
        samples_ties: Whether to settle ties inside lists at random.

    Raises:
        ConfigError: A name cannot be used, or there is nothing to compare, or nothing is judged.
        DataError: A file breaks a rule.
    """
    if given.qrels is None:
        raise ConfigError("systems are compared on judgments: name a file of judgments")
    lists = read_starter_lists(given, progress)
    qrels = load_qrels(given.qrels, layout=given.qrels_layout)
    dataset = make_dataset(
        given.name or name_dataset(given.qrels),
        qrels,
        lists.runs,
        rerankers=lists.rerankers,
        score_spaces=lists.spaces,
        queries=None if given.queries is None else load_known_queries(given.queries, qrels),
        qrels_path=given.qrels,
        paths={**given.runs, **{name: file.path for name, file in given.rerankers.items()}},
        layout=given.run_layout,
        binary_relevance=given.binary_relevance,
    )
    known = {name: read_meta(file.path) for name, file in given.rerankers.items()}
    dataset = replace(
        dataset, provenance={name: meta for name, meta in known.items() if meta is not None}
    )
    experiment, source = make_experiment(
        "try",
        lists.starter.systems,
        dataset=dataset.name,
        baseline=lists.starter.baseline,
        measures=list(given.measures),
    )
    report = run_on_datasets(experiment, source, [dataset], progress, samples_ties=samples_ties)
    return StarterComparison(report, dataset, source, lists.notes)


def _check_names(given: StarterInput) -> None:
    names = [*given.runs, *given.rerankers]
    for name in names:
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot name a list: begin with a letter or digit, and use letters, "
                "digits, blanks and . + - _ only"
            )
        if names.count(name) > 1:
            raise ConfigError(f"{name!r} names both a list and a reranker: rename one of them")


def _score_spaces(
    given: StarterInput, rerankers: Mapping[str, Run]
) -> tuple[dict[str, ScoreSpace], list[str]]:
    """The score space of each rerank list, and a sentence for each that was guessed."""
    spaces: dict[str, ScoreSpace] = {}
    guesses = []
    for name, run in rerankers.items():
        space = given.rerankers[name].score_space
        if space is None:
            space, reason = guess_score_space(run)
            guesses.append(
                f"{name}: score_space {space}, guessed because {reason}; --rerank "
                f"{name}:SPACE=FILE sets it."
            )
        spaces[name] = space
    return spaces, guesses

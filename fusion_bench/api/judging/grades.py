"""What the grades of several judges say, as the commands of ``grades`` measure it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fusion_bench.api.inputs.datasets import locate_dataset
from fusion_bench.api.inputs.records import is_path, list_measures, read_qrels
from fusion_bench.config.files.yaml_source import Source
from fusion_bench.errors import DataError
from fusion_bench.experiment.experiment import Experiment, read_experiment
from fusion_bench.grades.agreement.measure_agreement import JudgeGrades, measure_agreement
from fusion_bench.grades.agreement.read_judges import read_judges
from fusion_bench.grades.agreement.records import AgreementReport
from fusion_bench.grades.estimate.draw_sample import draw_sample
from fusion_bench.grades.estimate.estimate_experiment import estimate_experiment
from fusion_bench.grades.estimate.records import GradeEstimate
from fusion_bench.grades.replaced_measures import replace_measures
from fusion_bench.grades.sensitivity.judge_experiment import judge_experiment
from fusion_bench.grades.sensitivity.records import JudgeSensitivity
from fusion_bench.io.dataset_search import find_folders
from fusion_bench.stats.agreement.kappa import Weighting

PathLike = str | os.PathLike[str]


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
    with _open_experiment(experiment, measures, folders) as (parsed, source, places):
        return estimate_experiment(
            *(parsed, source),
            people=people,
            machine=machine,
            folders=places,
            systems=systems,
            dataset=dataset,
        )


def sensitivity(
    experiment: PathLike,
    *,
    judges: Sequence[str] = (),
    systems: Sequence[str] = (),
    measures: object = None,
    dataset: str | None = None,
    folders: Collection[PathLike] | None = None,
) -> JudgeSensitivity:
    """The same systems under each judge: which verdicts and orders depend on the judge.

    Args:
        experiment: The experiment's file.
        judges: Names, the reference first; empty = the judgments (``qrels``), then all others.
        systems: Names, beside the baseline; empty = all.
        measures: One or several, the first decides; by default the experiment's.
        dataset: One of several datasets of the experiment.
        folders: Where named datasets live; by default as for :func:`gate`.

    Raises:
        FusionBenchError: The experiment or its data breaks a rule, a name is unknown, or there are
            no two judges with a query in common.
    """
    with _open_experiment(experiment, measures, folders) as (parsed, source, places):
        return judge_experiment(
            *(parsed, source), folders=places, judges=judges, systems=systems, dataset=dataset
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
    with _open_experiment(experiment, None, folders) as (parsed, source, places):
        return draw_sample(
            *(parsed, source), machine=machine, count=n, seed=seed, folders=places, dataset=dataset
        )


@contextmanager
def _open_experiment(
    experiment: PathLike, measures: object, folders: Collection[PathLike] | None
) -> Iterator[tuple[Experiment, Source, list[Path]]]:
    """The experiment with these measures, its source, and the folders of named datasets."""
    path = Path(experiment)
    names = [] if measures is None else list_measures(measures)
    parsed, source = read_experiment(path, overrides=replace_measures(names))
    yield parsed, source, find_folders(folders, path)

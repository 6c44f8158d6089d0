"""Judgments, runs, queries, measures, datasets in whatever form they are at hand.

A path is read as the commands read it; everything else is recognized by
:mod:`fusion_bench.data.document_rows`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeGuard, get_args

from fusion_bench.config.models import parse_model
from fusion_bench.config.own_methods import is_own
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Query, ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError, UnknownNameError, did_you_mean
from fusion_bench.evaluation.in_memory import make_dataset, name_dataset
from fusion_bench.io import dataset as stored
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import (
    LIST_KEYS,
    NO_SETTINGS,
    QRELS,
    QRELS_KEYS,
    FileSettings,
    find_dataset,
    find_folders,
)
from fusion_bench.io.formats import source_name
from fusion_bench.io.json_objects import load_queries, parse_query
from fusion_bench.io.load_records import check_score_space, load_stated_qrels, load_stated_run
from fusion_bench.io.looks import find_dataset_folder
from fusion_bench.io.raw_files import DEFAULT_LAYOUT
from fusion_bench.measures import Measure, measure_classes
from fusion_bench.measures.aliases import resolve_alias
from fusion_bench.methods.fuse.rrf import GIVE_ROLE

#: Role or roles by the name of a run.
Roles: TypeAlias = Mapping[str, str | Collection[str]]
#: How a call of Python gives a list the role that a method needs.
GIVE_ROLE_IN_PYTHON: Final = "write roles={'LIST': 'question'}"


@contextmanager
def explain_roles(remedy: str = GIVE_ROLE_IN_PYTHON) -> Iterator[None]:
    """Name the remedy of a missing role as the caller writes it, not as ``dataset.yaml`` does."""
    try:
        yield
    except ConfigError as error:
        if GIVE_ROLE not in str(error):
            raise
        raise ConfigError(str(error).replace(GIVE_ROLE, remedy)) from None


def pop_settings(options: dict[str, Any]) -> FileSettings:
    """Take the settings of lists and judgments out of the options of a call.

    Raises:
        ConfigError: A value has no list.
    """
    names = (LIST_KEYS | QRELS_KEYS) & set(options)
    return FileSettings.from_options({name: options.pop(name) for name in sorted(names)})


def read_qrels(given: object, settings: FileSettings = NO_SETTINGS) -> Qrels:
    """Judgments: a path, ``Qrels``, or what :meth:`Qrels.from_dict` takes.

    Args:
        given: The judgments.
        settings: What is stated of them; of ``Qrels``, which are read already, nothing may be.

    Raises:
        ConfigError: Something is stated of ``Qrels``.
        DataError: A file or a row breaks a rule.
    """
    if isinstance(given, Qrels):
        for key in settings.keys_of(QRELS):
            raise ConfigError(f"{key}: the Qrels are read already: give it to Qrels.from_dict")
        return given
    if is_path(given):
        return load_stated_qrels(Path(given), settings)
    options = settings.qrels("").grade_options
    try:
        return Qrels.from_dict(given, options=options)
    except DataError as error:
        raise DataError(f"qrels: {error}") from None


def read_run(given: object, name: str | None = None, settings: FileSettings = NO_SETTINGS) -> Run:
    """A run: a path, a ``Run``, or what :meth:`Run.from_dict` takes.

    Args:
        given: The run.
        name: Its name; by default its own, or that of its file.
        settings: What is stated of it.

    Raises:
        ConfigError: The name is empty, or something stated breaks a rule.
        DataError: A file or a row breaks a rule.
    """
    if name == "":
        raise ConfigError("a run needs a name, and '' is not a name: give {name: run}")
    if isinstance(given, Run):
        run = given if name is None else replace(given, name=name)
        keys = settings.keys_of(run.name)
        return run.reread(settings.list(run.name, "").read_options) if keys else run
    if is_path(given):
        path = Path(given)
        return load_stated_run(path, name or source_name(path), settings)
    own = getattr(given, "name", None)
    label = name or (own if isinstance(own, str) and own else "run")
    spec = settings.list(label, "")
    if spec.layout.key != DEFAULT_LAYOUT.key:
        raise ConfigError(f"{label}: columns and encoding apply to files only: delete them")
    try:
        return Run.from_dict(label, given, read_options=spec.read_options)
    except DataError as error:
        raise DataError(f"run {name!r}: {error}" if name else str(error)) from None


def read_runs(given: object, settings: FileSettings = NO_SETTINGS) -> dict[str, Run]:
    """Runs by name.

    Args:
        given: ``{name: run}``, a list of runs, or one run; each as for :func:`read_run`. A run
            without a name of its own is called ``run1``, ``run2``, …
        settings: What is stated of them.

    Raises:
        ConfigError: Two have one name.
        DataError: A file or a row breaks a rule.
    """
    if isinstance(given, Mapping) and _names_runs(given):
        return {str(name): read_run(run, str(name), settings) for name, run in given.items()}
    runs: dict[str, Run] = {}
    items = given if is_list(given) and given and not _is_row(given[0]) else [given]
    for number, run in enumerate(items, start=1):
        known = isinstance(run, Run) or is_path(run) or isinstance(getattr(run, "name", None), str)
        table = read_run(run, None if known else f"run{number}", settings)
        if table.name in runs:
            raise ConfigError(f"two runs are named {table.name!r}: give them as {{name: run}}")
        runs[table.name] = table
    return runs


def is_path(given: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether it names a file."""
    return isinstance(given, str | os.PathLike)


def is_list(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list of things, and no text."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _is_row(item: object) -> bool:
    """Whether it is one row of a run, and no run."""
    if isinstance(item, Mapping):
        return not any(isinstance(value, Mapping) or is_list(value) for value in item.values())
    return hasattr(item, "_fields") or (isinstance(item, tuple) and len(item) == 3)


def _names_runs(given: Mapping[Any, Any]) -> bool:
    """Whether a mapping's keys name runs, and not queries."""
    filled = (value for value in given.values() if not isinstance(value, Mapping) or value)
    first = next(filled, None)
    if isinstance(first, Mapping):
        inner = next(iter(first.values()), None)
        return isinstance(inner, Mapping | Set) or is_list(inner)
    if is_list(first):
        fields = first[0] if first and isinstance(first[0], tuple | Mapping) else ()
        return bool(first) and (hasattr(first[0], "_fields") or len(fields) > 2)
    attributes = ("columns", "to_dict", "scoreddocs_iter", "__next__")
    return is_path(first) or isinstance(first, Run) or any(hasattr(first, a) for a in attributes)


def read_queries(given: object) -> dict[str, Query]:
    """Read queries from a path (JSON Lines), or from ``{id: text, Query or its fields}``.

    Fields of the user's own are kept, unless they look like a misspelled one.

    Raises:
        DataError: A file breaks a rule, or it is of another kind.
    """
    if given is None:
        return {}
    if is_path(given):
        return load_queries(Path(given))
    if not isinstance(given, Mapping):
        raise DataError(f"queries: give a path or {{id: text}}, not {type(given).__name__}")
    queries, known = {}, ("text", *COMPARED_FIELDS)
    for key, value in zip(map(str, given), given.values(), strict=True):
        if isinstance(value, Query | str):
            queries[key] = value if isinstance(value, Query) else Query(key, value)
            continue
        if not isinstance(value, Mapping):
            raise DataError(f"query {key!r}: give its text or a mapping of {', '.join(known)}")
        for name in value:
            if name not in known and (hint := did_you_mean(str(name), known)):
                raise DataError(f"query {key!r}: unknown field {name!r}{hint}: rename it")
        queries[key] = parse_query({**value, "id": key}, f"query {key!r}")
    return queries


#: What other packages call the arguments ``measures`` and ``measure``.
MEASURE_WORDS: Final = frozenset({"eval_metrics", "measure", "measures", "metric", "metrics"})


def refuse_measure_words(options: Mapping[str, object], function: str, word: str) -> None:
    """Refuse a keyword argument that other packages have for the measures.

    Raises:
        ConfigError: Names the word of this package.
    """
    for given in sorted(MEASURE_WORDS & options.keys()):
        raise ConfigError(f"{function}: unknown key {given!r}; did you mean {word!r}?")


def list_measures(given: object) -> list[str]:
    """Names of measures: a text, a measure of this package or of ir_measures, or several.

    A function or class of one's own is known by its name from then on, with parameters as
    ``(measure, {"cutoff": 10})``.

    Raises:
        ConfigError: A function or class is no measure, or has the name of another one.
    """
    items: Iterable[Any] = given if isinstance(given, list | tuple | set) else [given]
    names = []
    for item in items:
        is_pair = isinstance(item, tuple) and len(item) == 2 and is_own(item[0])
        own, parameters = item if is_pair else (item, {})
        if not is_own(own):
            names.append(own.name if isinstance(own, Measure) else str(own))
            continue
        name = parse_model(measure_classes.add_own(own), parameters).name
        if resolve_alias(name) != name:
            raise ConfigError(f"{name}: is an alias of {resolve_alias(name)}: rename the measure")
        names.append(name)
    return names


#: Options that describe the data, among those of an experiment.
DATA_OPTIONS = frozenset({"binary_relevance", "groups", "judgments"})


def load_dataset(
    dataset: str | os.PathLike[str],
    *,
    runs: Collection[str] | None = None,
    rerankers: Collection[str] | None = None,
    cache: bool = True,
    folders: Collection[str | os.PathLike[str]] | None = None,
) -> Dataset:
    """Read a dataset and check it.

    Args:
        dataset: Its name, its folder, or its ``dataset.yaml``.
        runs: Names of the runs to read; all by default.
        rerankers: Names of the rerank lists to read; all by default.
        cache: Whether what was read before may be taken from the cache beside it.
        folders: Where named datasets live; by default ``datasets`` here and in the folders above.

    Raises:
        FusionBenchError: There is none, or it or one of its files breaks a rule.
    """
    path = locate_dataset(dataset, folders)
    return stored.load_dataset(path, runs=runs, rerankers=rerankers, cache=cache, every_query=None)


def locate_dataset(
    dataset: str | os.PathLike[str], folders: Collection[str | os.PathLike[str]] | None = None
) -> Path:
    """The ``dataset.yaml`` of a dataset; arguments as for :func:`load_dataset`."""
    return find_dataset(os.fspath(dataset), find_folders(folders))


def read_dataset(
    qrels: object,
    runs: object = None,
    *,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    needs_judgments: bool = True,
    settings: FileSettings = NO_SETTINGS,
    **options: Any,  # noqa: ANN401 - the model checks them
) -> Dataset:
    """A dataset of judgments and lists in any form.

    Args:
        qrels: Judgments, or a dataset: its name, its path, or a ``Dataset``.
        runs: Runs by name, a list of runs, or one; of a dataset, the names of those to use, or
            other runs in their place. All runs of the dataset by default.
        rerankers: The same for rerank lists.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups, splits and texts: a path or ``{id: …}``.
        needs_judgments: Refuse a dataset without any.
        settings: What is stated of judgments and lists that no dataset describes.
        options: Of a ``dataset.yaml``: ``binary_relevance``, ``groups``, ``judgments``.

    Raises:
        FusionBenchError: Something breaks a rule; says what.
    """
    dataset = open_dataset(qrels)
    if dataset is None and runs is None:
        raise ConfigError("runs: needed, because the judgments are no dataset: give {name: run}")
    if dataset is not None and settings.stated:
        key = next(key for keys in settings.stated.values() for key in keys)
        raise ConfigError(f"{key}: {dataset.name} is a dataset: write it into its dataset.yaml")
    if dataset is not None and needs_judgments:
        require_judgments(dataset)
    if dataset is not None:
        dataset, runs, rerankers = _choose_lists(dataset, runs, rerankers)
        others = (runs, rerankers, queries, score_spaces or None, options or None)
        if all(given is None for given in others):
            return dataset
    lists, spaces = read_rerankers(rerankers, score_spaces, dataset, settings)
    if dataset is not None:
        spec = dataset.spec.model_dump(include=set(DATA_OPTIONS))
        if dataset.spec.group_file is not None:
            spec["groups"] = "none"  # the queries have those of the file
        options = spec | options
    if runs is None and dataset is not None:
        tables = dict(dataset.runs)
    else:
        tables = read_runs(runs, settings)
    settings.check_names([*tables, *lists])
    name = name_dataset(Path(qrels)) if is_path(qrels) else "data"
    made = make_dataset(
        name if dataset is None else dataset.name,
        read_qrels(qrels, settings) if dataset is None else dataset.qrels,
        tables,
        rerankers=lists,
        score_spaces=spaces,
        queries=read_queries(queries) or ({} if dataset is None else dataset.declared),
        settings=settings,
        **options,
    )
    if dataset is None:
        folder = find_dataset_folder(Path(qrels)) if is_path(qrels) else None
        return replace(made, folder=folder)
    known = {} if rerankers is not None else dataset.provenance
    return replace(made, provenance=known, has_file=dataset.has_file, folder=dataset.folder)


def require_judgments(dataset: Dataset) -> None:
    """Refuse a dataset in which nothing is judged.

    Raises:
        ConfigError: Says how to judge.
    """
    if not dataset.is_judged:
        raise ConfigError(
            f"{dataset.name}: no judgments, and they are needed here: make some with 'fusion-bench "
            "judge' on its folder, or name a file of them as 'qrels' of its dataset.yaml"
        )


def open_dataset(given: object) -> Dataset | None:
    """The dataset that is meant by a name, a folder, a ``dataset.yaml`` or itself.

    None = it is something else, such as a file of judgments or of a run.

    Raises:
        FusionBenchError: There is no such dataset, or it breaks a rule.
    """
    if isinstance(given, Dataset):
        return given
    return load_dataset(given) if is_path(given) and _names_dataset(Path(given)) else None


def dataset_folder(given: object) -> Path | None:
    """The folder of the dataset that is meant by a name or a path; None = it is something else.

    Raises:
        FusionBenchError: There is no such dataset.
    """
    is_named = is_path(given) and _names_dataset(Path(given))
    return locate_dataset(given).parent if is_path(given) and is_named else None


def _names_dataset(path: Path) -> bool:
    is_yaml = path.suffix in {".yaml", ".yml"}
    if path.is_file() and not is_yaml:
        return False
    # Another path is read as a file of judgments, which names what is wrong.
    return is_yaml or path.is_dir() or (path.suffix == "" and len(path.parts) == 1)


def _choose_lists(
    dataset: Dataset, runs: object, rerankers: object
) -> tuple[Dataset, object, object]:
    """The dataset with only these of its lists; then what is given in place of its lists."""
    run_names = _known_names(runs, dataset.runs, "run")
    rerank_names = _known_names(rerankers, dataset.rerankers, "reranker")
    chosen = replace(
        dataset,
        runs={name: dataset.runs[name] for name in run_names or ()},
        rerankers={name: dataset.rerankers[name] for name in rerank_names or ()},
    )
    return (
        chosen,
        runs if run_names is None else None,
        rerankers if rerank_names is None else None,
    )


def _known_names(given: object, known: Mapping[str, Run], kind: str) -> list[str] | None:
    """Names of lists that a dataset has; None = it is something else."""
    if given is None:
        return list(known)
    names = [given] if isinstance(given, str) else given
    if not is_list(names) or not all(isinstance(name, str) for name in names):
        return None
    for name in names:
        if name not in known and not Path(name).exists():
            raise UnknownNameError(kind, name, known)
    return list(names) if all(name in known for name in names) else None


def read_rerankers(
    given: object,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    dataset: Dataset | None = None,
    settings: FileSettings = NO_SETTINGS,
) -> tuple[dict[str, Run], dict[str, ScoreSpace]]:
    """Rerank lists by name, and what their numbers mean: as it is given, known or guessed.

    Raises:
        UnknownNameError: A score space, or the list that it is given for, is unknown.
        DataError: A file or a row breaks a rule, or a score lies outside the space that is given.
    """
    if given is not None:
        from fusion_bench.evaluation.starter_systems import guess_score_space  # late: seldom

        lists = read_runs(given, settings)
        spaces = {name: guess_score_space(run)[0] for name, run in lists.items()}
    elif dataset is not None:
        lists, spaces = dict(dataset.rerankers), dict(dataset.spaces)
    else:
        lists, spaces = {}, {}
    check_space_names(score_spaces or {}, lists)
    for name, space in (score_spaces or {}).items():
        try:
            check_score_space(lists[name].scores, space)
        except DataError as error:
            raise DataError(f"score_spaces: {name}: {error}") from None
    return lists, {name: spaces[name] for name in lists} | dict(score_spaces or {})


def check_space_names(spaces: Mapping[str, ScoreSpace], lists: Collection[str]) -> None:
    """Refuse a score space that is none, or that is given for no list.

    Raises:
        UnknownNameError: Such as it.
    """
    for name, space in spaces.items():
        if name not in lists:
            raise UnknownNameError("reranker", name, lists, where="score_spaces")
        if space not in get_args(ScoreSpace):
            raise UnknownNameError("score space", space, get_args(ScoreSpace), where="score_spaces")

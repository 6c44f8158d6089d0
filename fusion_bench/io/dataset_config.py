"""What a ``dataset.yaml`` says: its files, their trials, judges, model families."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_serializer, field_validator, model_validator

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.query_types import FieldConditions
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.query_groups import Grouping
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.io.formats import FORMATS
from fusion_bench.io.raw_files import FileLayout

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def _normalize_family(name: str) -> str:
    plain = name.strip().casefold()
    if not NAME.fullmatch(plain):
        raise ValueError(
            f"{name!r} is no family of models: name it in letters, digits, '.', '_' and '-', "
            "such as gpt or llama-3"
        )
    return plain


#: One name for a family, in lower case: ``GPT`` and ``gpt`` are the same.
Family: TypeAlias = Annotated[str, AfterValidator(_normalize_family)]


class FileColumns(StrictModel):
    """A file's own names of its columns, where they are not the usual ones."""

    query: str | None = None
    document: str | None = None

    @model_validator(mode="after")
    def _refuse_repeats(self) -> FileColumns:
        names = [name for _, name in self if name is not None]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice: each column holds one thing")
        return self


class FileSpec(StrictModel):
    """One file of a ``dataset.yaml``: its path, format and columns.

    The path of a list may be a pattern: its files are the list's trials, in the order of names.
    """

    path: str
    format: str | None = None
    columns: FileColumns | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                FORMATS.find_plugin(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return value

    @property
    def layout(self) -> FileLayout:
        """How the file is read."""
        columns = {role: name for role, name in self.columns or () if name is not None}
        return FileLayout(self.format, columns)


#: Who gave the grades: people, or a model.
JudgeKind: TypeAlias = Literal["human", "machine"]


class QrelsColumns(FileColumns):
    """The names of the columns of judgments."""

    grade: str | None = None


class GradeFileSpec(FileSpec):
    """A file of grades, and who gave them.

    Attributes:
        kind: ``human`` = people; ``machine`` = a model.
        family: The family of that model, such as ``gpt``; None = not known.
    """

    columns: QrelsColumns | None = None
    kind: JudgeKind = "human"
    family: Family | None = None

    @model_validator(mode="after")
    def _refuse_human_family(self) -> GradeFileSpec:
        if self.kind == "human" and self.family is not None:
            raise ValueError(
                f"people have no model family, given family {self.family!r}: write "
                "'kind: machine', or delete 'family'"
            )
        return self


class QrelsSpec(GradeFileSpec):
    """The file of the judgments.

    Attributes:
        unmeasured: Whether the gate accepts a machine's grades whose agreement with people is not
            measured, or not shown.
    """

    unmeasured: Literal["refuse", "accept"] = "refuse"


class JudgeSpec(GradeFileSpec):
    """The grades of one further judge, on the scale of the judgments.

    Attributes:
        sample: How the queries of this judge were chosen: ``random`` = a random sample of all
            queries; ``chosen`` = by what they could change. None = not stated.
        map: Grade in the file → grade on the scale of the judgments; None = the same scale.
    """

    kind: JudgeKind
    sample: Literal["random", "chosen"] | None = None
    map: Annotated[dict[int, int], Field(min_length=1)] | None = None


#: Characters that make a path a pattern, unless a file has exactly this name.
WILDCARDS: Final = frozenset("*?[")
#: Files beside a list that say where it comes from, and are no list.
SIDECAR: Final = ".meta.json"


def is_pattern(folder: Path, given: str) -> bool:
    """Whether a path names several files rather than one.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if WILDCARDS.isdisjoint(given):
        return False
    try:
        return not (folder / given).exists()
    except (OSError, ValueError):
        return False  # opening it says why


def is_supported(pattern: str) -> bool:
    """Whether a pattern is relative, and searches folders of a stated depth only."""
    return not Path(pattern).is_absolute() and "**" not in pattern


def expand_path(folder: Path, given: str) -> tuple[Path, ...]:
    """The file of a path, which need not exist; the files of a pattern, in the order of trials.

    Hidden files, files of hidden folders and records of provenance are no trials.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if not (is_pattern(folder, given) and is_supported(given)):
        return (folder / given,)
    try:
        names = [path.relative_to(folder) for path in folder.glob(given)]
    except (OSError, ValueError):
        return (folder / given,)
    trials = sorted(filter(_is_list, names), key=lambda name: natural_key(name.as_posix()))
    return tuple(folder / name for name in trials)


def would_match(folder: Path, given: str, path: Path) -> bool:
    """Whether a file that is written there becomes one of a pattern's files.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
        path: Any, as ``folder`` is written.
    """
    if not is_pattern(folder, given) or not path.is_relative_to(folder):
        return False
    name, patterns = path.relative_to(folder), Path(given).parts
    if not _is_list(name) or len(name.parts) != len(patterns):
        return False
    return all(map(fnmatchcase, name.parts, patterns))


def _is_list(name: Path) -> bool:
    """Whether a path from the dataset's folder is neither hidden nor a record of provenance."""
    is_hidden = any(part.startswith(".") and part != ".." for part in name.parts)
    return not is_hidden and not name.name.endswith(SIDECAR)


def natural_key(name: str) -> tuple[list[tuple[str, int]], str]:
    """Orders names as people number them: numbers by value, so that ``a-9`` precedes ``a-10``.

    Args:
        name: Names with equal numbers, such as ``a-1`` and ``a-01``, follow the order of bytes.
    """
    parts = re.findall(r"([^0-9]*)([0-9]*)", name)
    return [(text, int(number) if number else -1) for text, number in parts], name


FILE = "dataset.yaml"
#: What values of ``groups`` mean; another one names a file.
GROUPINGS: Final[Mapping[str | None, Grouping]] = {
    None: "identical",
    "identical": "identical",
    "auto": "auto",
    "none": "none",
    "declared": "none",
}


class RunColumns(FileColumns):
    """The names of a run's columns."""

    score: str | None = None
    rank: str | None = None


class ListSpec(FileSpec):
    """One list of a ``dataset.yaml``: its file, roles and :class:`ReadOptions`.

    Attributes:
        refined: A file of the same kind, with what the list returns for refined queries, under the
            ids of the original ones; only CRAG's verdicts read it.
        family: The model family behind it, such as ``gpt``; None = none, or not known.
    """

    refined: str | None = None
    family: Family | None = None
    columns: RunColumns | None = None
    roles: tuple[str, ...] = ()
    rank_from: Literal["score", "column"] = "score"
    source_ties: Literal["trec", "file"] = "trec"
    on_duplicate: Literal["error", "best_rank"] = "error"
    drop_zero_scores: bool = False

    @property
    def read_options(self) -> ReadOptions:
        """The options that decide its ranks."""
        return ReadOptions(
            self.rank_from, self.source_ties, self.on_duplicate, self.drop_zero_scores
        )


class RunSpec(ListSpec):
    """One run of a ``dataset.yaml``.

    Attributes:
        when: Field of a query → the values with which the run is on. For every other query it
            returns nothing and weighs 0; None = it is on for all.
    """

    when: Annotated[FieldConditions, Field(min_length=1)] | None = None


class RerankSpec(ListSpec):
    """One rerank list: as a run, plus what its numbers mean."""

    score_space: ScoreSpace


class DatasetSpec(StrictModel):
    """What a ``dataset.yaml`` says.

    Attributes:
        name: The dataset's name.
        version: Raised by its owner when the contents change.
        description: One line for ``dataset list``.
        license: Terms of the data.
        qrels: File of judgments: its path, or a mapping with its path, format, columns and judge;
            None = nothing is judged yet.
        judges: Files with the grades of further judges, by name.
        queries: JSON Lines of queries: text, type, intent, confidence, group, split, and others.
        groups: How the groups of ``queries`` are joined. ``identical``: queries with the same
            normalized text, or the same lists, are one group, and reports warn of
            near-duplicates. ``auto``: so are those with similar texts or equal judgments.
            ``none`` (or ``declared``): no other queries than those of a declared group depend on
            each other. Or JSON Lines with the ``id`` and ``group`` of queries.
        documents: JSON Lines of documents: id, text.
        judgments: How the judgments came about; says what an unjudged document means. None = not
            declared.
        runs: Run files by name.
        rerank: Rerank lists by name.
        binary_relevance: Grade from which binary measures count a document as relevant.
        follow_links_to: Folders outside the dataset's own that its symbolic links may lead to,
            such as a shared store; relative to its folder.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"licence": "this key is called 'license' now"}

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    version: str = "1"
    description: str = ""
    license: str = ""
    qrels: QrelsSpec | None = None
    judges: dict[str, JudgeSpec] = Field(default_factory=dict)
    queries: str | None = None
    groups: Annotated[str, Field(min_length=1)] | None = None
    documents: str | None = None
    judgments: Literal["pooled", "sparse", "complete"] | None = None
    runs: dict[str, RunSpec] = Field(default_factory=dict)
    rerank: dict[str, RerankSpec] = Field(default_factory=dict)
    binary_relevance: Annotated[int, Field(ge=1)] = 1
    follow_links_to: tuple[str, ...] = ()

    @property
    def is_judged_by_machine(self) -> bool:
        """Whether a model gave the judgments."""
        return self.qrels is not None and self.qrels.kind == "machine"

    @property
    def has_refined_lists(self) -> bool:
        """Whether a list has a file for refined queries."""
        return any(each.refined for each in (*self.runs.values(), *self.rerank.values()))

    @property
    def grouping(self) -> Grouping:
        """How the declared groups are joined."""
        return GROUPINGS.get(self.groups, "file")

    @property
    def group_file(self) -> str | None:
        """The path of the file of groups; None = there is none."""
        return self.groups if self.grouping == "file" else None

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of its files and folders, as it names them."""
        lists = (*self.runs.values(), *self.rerank.values())
        listed = [path for each in lists for path in (each.path, each.refined)]
        listed += [judge.path for judge in self.judges.values()]
        qrels = None if self.qrels is None else self.qrels.path
        paths = (qrels, self.queries, self.group_file, self.documents, *listed)
        return tuple(path for path in paths if path is not None)

    def file_paths(self, folder: Path) -> tuple[Path, ...]:
        """The same files, each trial of a list by itself; they need not exist.

        Args:
            folder: Of the dataset.
        """
        return tuple(path for given in self.files for path in expand_path(folder, given))

    def list_paths(self, folder: Path) -> tuple[Path, ...]:
        """The files of the judgments and of all lists."""
        judged = () if self.qrels is None else (self.qrels,)
        files = (*judged, *self.runs.values(), *self.rerank.values())
        return tuple(path for file in files for path in expand_path(folder, file.path))

    @field_validator("qrels", mode="before")
    @classmethod
    def _expand_path(cls, value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        return {"path": value} if isinstance(value, str) else value

    @field_serializer("qrels")
    def _shorten_path(self, value: QrelsSpec | None) -> object:
        if value is None:
            return None
        given = value.model_dump(exclude_none=True, exclude_defaults=True)
        return value.path if len(given) == 1 else given


def read_spec(path: Path) -> tuple[DatasetSpec, Source]:
    """What a ``dataset.yaml`` says, and where it says it."""
    source = read_yaml(path)
    return parse_model(DatasetSpec, source.data, source.where), source

"""A dataset's configuration: where it is found, which files it names."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.query_types import FieldConditions
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.data.id_rules import apply_rule
from fusion_bench.data.ordering import ChunkScore
from fusion_bench.data.query_groups import Grouping
from fusion_bench.data.read_options import (
    GradeOptions,
    GradeRule,
    Order,
    ReadOptions,
    label_value,
)
from fusion_bench.data.records import Document, ScoreSpace
from fusion_bench.errors import ConfigError, DataError, UnknownNameError, did_you_mean
from fusion_bench.io.formats import FORMATS
from fusion_bench.io.json_objects import load_documents
from fusion_bench.io.raw_files import FileLayout
from fusion_bench.util.files import explain_error, resolve_path

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


def _check_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(
            f"{name!r} is no encoding of text: name one of Python's, such as utf-8, utf-16, cp1252 "
            "or latin-1"
        ) from None
    return name


#: The encoding of a text file, as Python names it.
Encoding: TypeAlias = Annotated[str, AfterValidator(_check_encoding)]


def _check_rule(rule: str) -> str:
    try:
        apply_rule(rule, ())
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return rule


#: A rule that changes document ids.
IdRule: TypeAlias = Annotated[str, AfterValidator(_check_rule)]


def _name_labels(scale: object) -> object:
    """A scale whose keys are text: YAML has numbers, too."""
    if not isinstance(scale, Mapping):
        return scale
    if any(isinstance(name, bool) for name in scale):
        raise ValueError("YAML reads a bare on, off, yes or no as true or false: quote it")
    return {label_value(name): grade for name, grade in scale.items()}


#: Value in a file → grade.
GradeScale: TypeAlias = Annotated[dict[str, int], BeforeValidator(_name_labels)]


class FileColumns(StrictModel):
    """A file's own names of its columns, where they are not the usual ones."""

    query: str | None = None
    document: str | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _name_number(cls, value: object) -> object:
        """A column's number, which stands for its name, as text."""
        return str(value) if type(value) is int else value

    @model_validator(mode="after")
    def _refuse_repeats(self) -> FileColumns:
        names = [name for _, name in self if name is not None]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice: each column holds one thing")
        return self


class FileSpec(StrictModel):
    """One file of a ``dataset.yaml``: its path, format, columns and encoding.

    The path of a list may be a pattern: its files are the list's trials, in the order of names.
    """

    path: str
    format: str | None = None
    columns: FileColumns | None = None
    encoding: Encoding | None = None

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
        return FileLayout(self.format, columns, self.encoding)


@dataclass(frozen=True)
class FileSettings:
    """What a command or a call states of files, beside their paths, without a ``dataset.yaml``.

    Attributes:
        stated: File → its keys in ``dataset.yaml``. A file is a list by its name, or the judgments
            as ``qrels``.
    """

    stated: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def from_options(
        cls, options: Mapping[str, Any], lists: Collection[str] | None = None
    ) -> FileSettings:
        """The settings that options of a call state.

        Args:
            options: Key → list → value; of :data:`QRELS_KEYS` the value alone.
            lists: The names of the lists; None = not known yet, see :meth:`check_names`.

        Raises:
            ConfigError: A value has no list.
            UnknownNameError: There is no such key, or no such list.
        """
        stated: dict[str, dict[str, Any]] = {}
        for key, value in options.items():
            if key not in LIST_KEYS | QRELS_KEYS:
                raise UnknownNameError("option", key, sorted(LIST_KEYS | QRELS_KEYS))
            files = {QRELS: value} if key in QRELS_KEYS else value
            if not isinstance(files, Mapping):
                raise ConfigError(f"{key}: give a value for each list, {{name: value}}")
            for name, each in files.items():
                stated.setdefault(name, {})[key] = each
        settings = cls(stated)
        if lists is not None:
            settings.check_names(lists)
        return settings

    def keys_of(self, name: str) -> Mapping[str, Any]:
        """What ``dataset.yaml`` would say of a file beside its path."""
        return self.stated.get(name, {})

    def qrels(self, path: Path | str) -> QrelsSpec:
        """The file of judgments.

        Raises:
            ConfigError: A value breaks a rule.
        """
        return parse_model(QrelsSpec, {"path": str(path), **self.keys_of(QRELS)}, QRELS)

    def list(self, name: str, path: Path | str) -> ListSpec:
        """The file of a list.

        Raises:
            ConfigError: A value breaks a rule, or is the judgments' by the name of the list.
        """
        if name == QRELS and name in self.stated:
            key = next(iter(self.stated[name]))
            raise ConfigError(f"{key}: {QRELS!r} means the judgments: give the list another name")
        return parse_model(ListSpec, {"path": str(path), **self.keys_of(name)}, name)

    def check_names(self, lists: Collection[str]) -> None:
        """Refuse values for files that there are not.

        Raises:
            UnknownNameError: Such as it.
        """
        for name, keys in self.stated.items():
            if name not in lists and name != QRELS:
                raise UnknownNameError("list", name, [*lists, QRELS], where=next(iter(keys)))


#: What calls may state of a file: keys of lists, some of which judgments have too …
LIST_KEYS: Final = frozenset({"columns", "order", "ids", "drop_own_id", "encoding", "requests"})
#: … and keys of judgments alone.
QRELS_KEYS: Final = frozenset({"grades", "on_duplicate"})
#: Names the judgments among the files that settings are stated of.
QRELS: Final = "qrels"
#: Nothing is stated of any file.
NO_SETTINGS: Final = FileSettings()

#: Who gave the grades: people, or a model.
JudgeKind: TypeAlias = Literal["human", "machine"]


class QrelsColumns(FileColumns):
    """The names of the columns of judgments."""

    grade: str | None = None


class GradeFileSpec(FileSpec):
    """A file of grades, and who gave them.

    Attributes:
        grades: Value in the file → grade, for grades that are words or fractions.
        on_duplicate: Which grade counts where one document has several for one query.
        ids: Rule that changes the document ids.
        kind: ``human`` = people; ``machine`` = a model.
        family: The family of that model, such as ``gpt``; None = not known.
    """

    columns: QrelsColumns | None = None
    grades: Annotated[GradeScale, Field(min_length=1)] | None = None
    on_duplicate: GradeRule = "error"
    ids: IdRule | None = None
    kind: JudgeKind = "human"
    family: Family | None = None

    @property
    def grade_options(self) -> GradeOptions:
        """How its rows become grades."""
        return GradeOptions(self.on_duplicate, self.grades or {}, self.ids)

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


def _is_pattern(folder: Path, given: str) -> bool:
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


def _is_supported(pattern: str) -> bool:
    """Whether a pattern is relative, and searches folders of a stated depth only."""
    return not Path(pattern).is_absolute() and "**" not in pattern


def expand_path(folder: Path, given: str) -> tuple[Path, ...]:
    """The file of a path, which need not exist; the files of a pattern, in the order of repeats.

    Hidden files, files of hidden folders and records of provenance are no repeats.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
    """
    if not (_is_pattern(folder, given) and _is_supported(given)):
        return (folder / given,)
    try:
        names = [path.relative_to(folder) for path in folder.glob(given)]
    except (OSError, ValueError):
        return (folder / given,)
    repeats = sorted(filter(_is_list, names), key=lambda name: _natural_key(name.as_posix()))
    return tuple(folder / name for name in repeats)


def would_match(folder: Path, given: str, path: Path) -> bool:
    """Whether a file that is written there becomes one of a pattern's files.

    Args:
        folder: Of the dataset.
        given: As the ``dataset.yaml`` names it.
        path: Any, as ``folder`` is written.
    """
    if not _is_pattern(folder, given) or not path.is_relative_to(folder):
        return False
    name, patterns = path.relative_to(folder), Path(given).parts
    if not _is_list(name) or len(name.parts) != len(patterns):
        return False
    return all(map(fnmatchcase, name.parts, patterns))


def _is_list(name: Path) -> bool:
    """Whether a path from the dataset's folder is neither hidden nor a record of provenance."""
    is_hidden = any(part.startswith(".") and part != ".." for part in name.parts)
    return not is_hidden and not name.name.endswith(SIDECAR)


def _natural_key(name: str) -> tuple[list[tuple[str, int]], str]:
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
        requests: A file of the queries that its answers are to, in their order, where they name
            none.
        collapse: The score of a document that the list names several times for a query, from the
            rows of its chunks.
    """

    refined: str | None = None
    requests: str | None = None
    family: Family | None = None
    columns: RunColumns | None = None
    roles: tuple[str, ...] = ()
    rank_from: Literal["score", "column"] = "score"
    source_ties: Literal["trec", "file"] = "trec"
    on_duplicate: Literal["error", "best_rank"] = "error"
    drop_zero_scores: bool = False
    order: Order | None = None
    drop_own_id: bool = False
    ids: IdRule | None = None
    collapse: ChunkScore | None = None
    collapse_k: Annotated[float, Field(ge=0, le=1000)] | None = None

    @model_validator(mode="after")
    def _check_collapse(self) -> ListSpec:
        if self.collapse is not None and self.on_duplicate != "error":
            raise ValueError("collapse and on_duplicate exclude each other: keep one")
        if self.collapse_k is not None and self.collapse != "rrf":
            raise ValueError("collapse_k is read only with collapse: rrf: leave collapse_k out")
        return self

    @property
    def read_options(self) -> ReadOptions:
        """The options that decide its ranks."""
        return ReadOptions(**{each.name: getattr(self, each.name) for each in fields(ReadOptions)})


class ChunkRules(NamedTuple):
    """Describe what systems that collapse chunks need of a dataset.

    Attributes:
        rows: Run → the score, and the k of ``rrf``, of a document that it lists several times.
        parents: Rule → the field of documents and the column of lists that may name parents.
    """

    rows: dict[str, tuple[ChunkScore, float]]
    parents: dict[str, tuple[str | None, str | None]]


#: What a list says of collapsing that does not.
NOT_COLLAPSED: Final[Mapping[str, Any]] = {"collapse": None, "collapse_k": None}


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
        without_relevant: What a judged query without a relevant document is to ``threshold``: one
            without an answer, or one of which nothing is known.
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
    without_relevant: Literal["unknown", "unanswerable"] = "unknown"
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

    @property
    def run_roles(self) -> dict[str, frozenset[str]]:
        """Roles of each run, by name."""
        return {name: frozenset(run.roles) for name, run in self.runs.items()}

    def file_paths(self, folder: Path) -> tuple[Path, ...]:
        """Paths of all files, each repeat of a list by itself; they need not exist.

        Args:
            folder: Of the dataset.
        """
        return tuple(path for given in self.files for path in expand_path(folder, given))

    def list_paths(self, folder: Path) -> tuple[Path, ...]:
        """The files of the judgments and of all lists."""
        judged = () if self.qrels is None else (self.qrels,)
        files = (*judged, *self.runs.values(), *self.rerank.values())
        return tuple(path for file in files for path in expand_path(folder, file.path))

    def merge_rows(
        self, rules: Mapping[str, tuple[ChunkScore, float]], source: Source
    ) -> DatasetSpec:
        """Return what is said of the runs, with the rows of one document merged.

        Args:
            rules: Run → the score of its documents, and the k of ``rrf``.
            source: Where the rest is said.

        Raises:
            ConfigError: A run says otherwise what becomes of its duplicates.
        """
        runs = dict(self.runs)
        for name in runs.keys() & rules.keys():
            score, k = rules[name]
            changed = {"collapse": score, "collapse_k": k if score == "rrf" else None}
            stated = {key: getattr(runs[name], key) for key in changed}
            if runs[name].on_duplicate != "error" or stated not in (changed, NOT_COLLAPSED):
                raise ConfigError(
                    f"{source.where(('runs', name))}: a system merges the rows of a document by "
                    f"collapse: {{by: id, score: {score}}}: delete on_duplicate and collapse here"
                )
            runs[name] = runs[name].model_copy(update=changed)
        return self.model_copy(update={"runs": runs}) if rules else self

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


def make_dataset_name(text: str, default: str) -> str:
    """The text with dashes for what a name cannot hold, or the default where nothing is left."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-._+") or default


def find_folders(
    folders: Collection[str | PathLike[str]] | None, experiment: Path | None = None
) -> list[Path]:
    """Where named datasets live.

    Args:
        folders: As given; None = ``datasets`` here and in the folders above.
        experiment: A file: then first of all ``datasets`` beside its folder.
    """
    if folders is not None:
        return [Path(folder) for folder in folders]
    beside = [] if experiment is None else [resolve_path(experiment).parent.parent / "datasets"]
    above = [folder / "datasets" for folder in Path.cwd().parents]
    return [*beside, Path("datasets"), *(folder for folder in above if folder.is_dir())]


def find_dataset(
    name: str, folders: Collection[Path], *, where: str = "", base: Path | None = None
) -> Path:
    """The ``dataset.yaml`` that a name or a path stands for.

    Args:
        name: A dataset's name, a folder, or a ``.yaml`` file.
        folders: Where named datasets live, in order.
        where: Prefix of the message that says where the name stands.
        base: Folder of the experiment that names it. A relative path starts there, or else in the
            working directory.

    Raises:
        ConfigError: There is no such file, or two of them: names the places.
        UnknownNameError: There is no such dataset; lists the names that there are, and where.
    """
    given = Path(name)
    is_file = given.suffix in {".yaml", ".yml"}
    if not is_file and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        for folder in folders:
            if _exists(folder / name / FILE):  # reading says what is none
                return folder / name / FILE
    file = given if is_file else given / FILE
    candidates = [file] if base is None else [base / file, file]
    places = list(dict.fromkeys(candidates))
    files = {resolve_path(place): place for place in reversed(places) if _exists(place)}
    if len(files) > 1:
        both = " and ".join(str(place) for place in places)
        raise ConfigError(
            f"{where}: {name!r} is two files, {both}: delete one, or give the absolute path"
        )
    if files:
        return next(iter(files.values()))
    if is_file:
        near: list[str] = []
        with suppress(OSError, ValueError):  # a name that no folder can have
            near += [str(each) for place in places for each in sorted(place.parent.glob("*.y*ml"))]
        hint = did_you_mean(str(places[0]), near) or ": check the path"
        looked = " and ".join(str(place) for place in places)
        raise ConfigError(
            f"{where}: {given}: no such file (looked for {looked}){hint}".lstrip(": ")
        )
    known = {path.parent.name for folder in folders for path in list_datasets(folder)}
    looked = ", ".join(str(folder) for folder in (*places, *folders))
    raise UnknownNameError(
        "dataset",
        name,
        known,
        where=f"{where}: in {looked}".lstrip(": "),
        remedy="name the folder that holds it with --datasets, or give the path of its "
        "dataset.yaml",
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False


def list_datasets(folder: Path) -> list[Path]:
    """Every ``dataset.yaml`` one level below ``folder``."""
    return sorted(folder.glob(f"*/{FILE}"))


class DatasetPaths:
    """Resolves a path of a ``dataset.yaml`` and refuses one that leaves its folder.

    A symbolic link may lead out of it, into the folders that ``follow_links_to`` names.

    Attributes:
        source: The ``dataset.yaml``.
        folder: Its folder, links resolved.
        stores: The folders that links may lead to, links resolved.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = resolve_path(source.path.parent)
        named = source.data.get("follow_links_to") or ()
        self.stores = [resolve_path(self.folder / Path(name).expanduser()) for name in named]

    def existing(self, given: str, *location: str) -> Path:
        """The file, which must be there; arguments as for a call.

        Raises:
            ConfigError: It is none, or outside.
            DataError: There is none.
        """
        path = self(given, *location)
        if not path.exists():
            there = [file.name for file in path.parent.glob("*") if file.name != FILE]
            near = did_you_mean(path.name, sorted(there)) or ": check the path"
            raise DataError(f"{self.source.where(location)}: {path}: no such file{near}")
        if path.is_dir():
            for file in path.iterdir():
                self(f"{given}/{file.name}", *location)
        return path

    def repeats(self, given: str, *location: str) -> tuple[Path, ...]:
        """The files of a list, those of a pattern in the order of their names.

        Raises:
            ConfigError: One is none, or outside; or the pattern is refused.
            DataError: There is none.
        """
        if not _is_pattern(self.folder, given):
            return (self.existing(given, *location),)
        if not _is_supported(given):
            raise ConfigError(
                f"{self.source.where(location)}: {given!r} is no pattern of a list's trials: write "
                "it relative to the dataset's folder, and with '*' in place of '**'"
            )
        paths = expand_path(self.folder, given)
        if not paths:
            raise DataError(
                f"{self.source.where(location)}: no file matches {given!r}: check the pattern, or "
                "make the lists first"
            )
        return tuple(
            self.existing(path.relative_to(self.folder).as_posix(), *location) for path in paths
        )

    def __call__(self, given: str, *location: str) -> Path:
        """The file.

        Args:
            given: As the ``dataset.yaml`` names it.
            location: Where it does.

        Raises:
            ConfigError: It is none, or outside.
        """
        try:
            path = (self.folder / given).resolve()
            is_there = path.exists()
        except (OSError, RuntimeError, ValueError) as error:  # too long, or links in a circle
            reason = explain_error(error)
            raise ConfigError(f"{self.source.where(location)}: {given!r}: {reason}") from None
        if not path.is_relative_to(self.folder):
            remedy = "copy the file into it"
            is_link = Path(os.path.normpath(self.folder / given)).is_relative_to(self.folder)
            if is_link:
                remedy += f", or name a folder around {str(path)!r} under 'follow_links_to'"
            if not (is_link and any(path.is_relative_to(store) for store in self.stores)):
                raise ConfigError(
                    f"{self.source.where(location)}: {given!r} leaves the dataset's folder: "
                    f"{remedy}"
                )
        if is_there and not (path.is_file() or path.is_dir()):
            raise ConfigError(
                f"{self.source.where(location)}: {given!r} is no ordinary file: copy it into one"
            )
        return self.source.path.parent / given


def documents_of(path: Path) -> dict[str, Document]:
    """The texts of a dataset's documents, by id; the bench itself never needs them.

    Args:
        path: Its ``dataset.yaml``.

    Raises:
        ConfigError: It names no documents.
        DataError: Their file breaks a rule.
    """
    spec, source = read_spec(path)
    if spec.documents is None:
        raise ConfigError(
            f"{path}: no 'documents': name a JSON Lines file with the texts, one "
            '{"id": …, "text": …} a line'
        )
    return load_documents(DatasetPaths(source)(spec.documents, "documents"))

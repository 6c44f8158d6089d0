"""What a ``dataset.yaml`` says, and where named ones are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_serializer, field_validator, model_validator

from fusion_bench.config.models import Source, StrictModel, parse_model, read_yaml
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, DataError, UnknownNameError, did_you_mean
from fusion_bench.io.file_layout import FileLayout
from fusion_bench.io.formats import check_format

FILE = "dataset.yaml"


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


class RunColumns(FileColumns):
    """The names of a run's columns."""

    score: str | None = None
    rank: str | None = None


class QrelsColumns(FileColumns):
    """The names of the columns of judgments."""

    grade: str | None = None


class FileSpec(StrictModel):
    """One file of a ``dataset.yaml``: its path, format and columns."""

    path: str
    format: str | None = None
    columns: FileColumns | None = None

    @field_validator("format")
    @classmethod
    def _check_format(cls, value: str | None) -> str | None:
        try:
            return None if value is None else check_format(value)
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @property
    def layout(self) -> FileLayout:
        """How the file is read."""
        columns = {role: name for role, name in self.columns or () if name is not None}
        return FileLayout(self.format, columns)


class QrelsSpec(FileSpec):
    """The file of the judgments."""

    columns: QrelsColumns | None = None


class RunSpec(FileSpec):
    """One run of a ``dataset.yaml``: its file, roles and :class:`ReadOptions`."""

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


class RerankSpec(RunSpec):
    """One rerank list: as a run, plus what its numbers mean."""

    score_space: ScoreSpace


class DatasetSpec(StrictModel):
    """What a ``dataset.yaml`` says.

    Attributes:
        name: The dataset's name.
        version: Raised by its owner when the contents change.
        description: One line for ``dataset list``.
        license: Terms of the data.
        qrels: File of judgments: its path, or a mapping with its path, format and columns.
        queries: JSON Lines of queries: text, type, intent, confidence, group, split.
        documents: JSON Lines of documents: id, text.
        judgments: How the judgments came about; says what an unjudged document means.
        runs: Run files by name.
        rerank: Rerank lists by name.
        binary_relevance: Grade from which binary measures count a document as relevant.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"licence": "this key is called 'license' now"}

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    version: str = "1"
    description: str = ""
    license: str = ""
    qrels: QrelsSpec
    queries: str | None = None
    documents: str | None = None
    judgments: Literal["pooled", "sparse", "complete"] = "pooled"
    runs: Annotated[dict[str, RunSpec], Field(min_length=1)]
    rerank: dict[str, RerankSpec] = Field(default_factory=dict)
    binary_relevance: Annotated[int, Field(ge=1)] = 1

    @field_validator("qrels", mode="before")
    @classmethod
    def _expand_path(cls, value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        return {"path": value} if isinstance(value, str) else value

    @field_serializer("qrels")
    def _shorten_path(self, value: QrelsSpec) -> object:
        is_plain = value.format is None and value.columns is None
        return value.path if is_plain else value.model_dump(exclude_none=True)


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
            if (folder / name / FILE).is_file():
                return folder / name / FILE
    places = _list_places(given if is_file else given / FILE, base)
    files = {place.resolve(): place for place in reversed(places) if _is_file(place)}
    if len(files) > 1:
        both = " and ".join(str(place) for place in places)
        raise ConfigError(
            f"{where}: {name!r} is two files, {both}: delete one, or give the absolute path"
        )
    if files:
        return next(iter(files.values()))
    if is_file:
        raise ConfigError(_describe_missing(given, places, where))
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


def _list_places(given: Path, base: Path | None) -> list[Path]:
    """Where a file may be: from the experiment's folder, and from the working directory."""
    places = [given] if base is None else [base / given, given]
    return list(dict.fromkeys(places))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _describe_missing(given: Path, places: Sequence[Path], where: str) -> str:
    """That no file is at any of these places, and a file with a similar name."""
    near: list[str] = []
    with suppress(OSError, ValueError):  # a name that no folder can have
        near += [str(file) for place in places for file in sorted(place.parent.glob("*.y*ml"))]
    hint = did_you_mean(str(places[0]), near) or ": check the path"
    looked = " and ".join(str(place) for place in places)
    return f"{where}: {given}: no such file (looked for {looked}){hint}".lstrip(": ")


def list_datasets(folder: Path) -> list[Path]:
    """Every ``dataset.yaml`` one level below ``folder``."""
    return sorted(folder.glob(f"*/{FILE}"))


def read_spec(path: Path) -> tuple[DatasetSpec, Source]:
    """What a ``dataset.yaml`` says, and where it says it."""
    source = read_yaml(path)
    return parse_model(DatasetSpec, source.data, source.where), source


class DatasetPaths:
    """Resolves a path of a ``dataset.yaml`` and refuses one that leaves its folder.

    Attributes:
        source: The ``dataset.yaml``.
        folder: Its folder, links resolved.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = source.path.parent.resolve()

    def existing(self, given: str, *location: str) -> Path:
        """The file, which must be there; arguments as below.

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
        except (OSError, RuntimeError, ValueError) as error:  # a null byte, or links in a circle
            raise ConfigError(f"{self.source.where(location)}: {given!r}: {error}") from None
        if not path.is_relative_to(self.folder):
            raise ConfigError(
                f"{self.source.where(location)}: {given!r} leaves the dataset's folder: "
                "copy the file into it"
            )
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ConfigError(
                f"{self.source.where(location)}: {given!r} is no ordinary file: copy it into one"
            )
        return self.source.path.parent / given

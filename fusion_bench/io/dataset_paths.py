"""Paths of datasets: where named ones are; the files of one, none of which leaves its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import Document, ScoreSpace
from fusion_bench.errors import ConfigError, DataError, UnknownNameError, did_you_mean
from fusion_bench.io.dataset_config import (
    FILE,
    DatasetSpec,
    ListSpec,
    expand_path,
    is_pattern,
    is_supported,
    read_spec,
)
from fusion_bench.io.json_objects import load_documents
from fusion_bench.io.load_records import FileRequest
from fusion_bench.util.file_paths import resolve_path
from fusion_bench.util.files import explain_error


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
    places = _list_places(given if is_file else given / FILE, base)
    files = {resolve_path(place): place for place in reversed(places) if _exists(place)}
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


def _exists(path: Path) -> bool:
    try:
        return path.exists()
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

    def trials(self, given: str, *location: str) -> tuple[Path, ...]:
        """The files of a list, those of a pattern in the order of their names.

        Raises:
            ConfigError: One is none, or outside; or the pattern is refused.
            DataError: There is none.
        """
        if not is_pattern(self.folder, given):
            return (self.existing(given, *location),)
        if not is_supported(given):
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
            self._check_link(given, path, location)
        if is_there and not (path.is_file() or path.is_dir()):
            raise ConfigError(
                f"{self.source.where(location)}: {given!r} is no ordinary file: copy it into one"
            )
        return self.source.path.parent / given

    def _check_link(self, given: str, path: Path, location: tuple[str, ...]) -> None:
        """Refuse a path that leaves the folder, but for a link into a declared store.

        Args:
            given: As the ``dataset.yaml`` names it.
            path: Where it leads, outside the folder.
            location: Where it is named.

        Raises:
            ConfigError: It is no link, or leads elsewhere.
        """
        remedy = "copy the file into it"
        if Path(os.path.normpath(self.folder / given)).is_relative_to(self.folder):
            if any(path.is_relative_to(store) for store in self.stores):
                return
            remedy += f", or name a folder around {str(path)!r} under 'follow_links_to'"
        raise ConfigError(
            f"{self.source.where(location)}: {given!r} leaves the dataset's folder: {remedy}"
        )


def request_lists(
    spec: DatasetSpec,
    paths: DatasetPaths,
    runs: Collection[str] | None,
    rerankers: Collection[str] | None,
    *,
    refined: bool,
) -> tuple[list[FileRequest], list[FileRequest]]:
    """The files of the runs and of the rerank lists, or those of refined queries in their place.

    Refined queries have one trial: the first file of each list without a refined one.

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        runs: Names of the runs; None = all.
        rerankers: Names of the rerank lists; None = all.
        refined: Take the file of the refined queries where a list has one.
    """

    def request(kind: str, name: str, run: ListSpec, space: ScoreSpace | None) -> FileRequest:
        if refined and run.refined is not None:
            files = [paths.existing(run.refined, kind, name, "refined")]
        else:
            files = [*paths.trials(run.path, kind, name, "path")]
        return FileRequest(
            files[0],
            name,
            frozenset(run.roles if space is None else ()),
            run.read_options,
            space,
            layout=run.layout,
            later_paths=() if refined else tuple(files[1:]),
        )

    run_files = [
        request("runs", name, run, None)
        for name, run in spec.runs.items()
        if runs is None or name in runs
    ]
    rerank_files = [
        request("rerank", name, run, run.score_space)
        for name, run in spec.rerank.items()
        if rerankers is None or name in rerankers
    ]
    return run_files, rerank_files


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

"""The paths of a ``dataset.yaml``: none leaves its folder; and how its lists are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from fusion_bench.config.yaml_source import Source
from fusion_bench.errors import ConfigError, DataError, did_you_mean
from fusion_bench.io.cache.cached_loader import FileRequest
from fusion_bench.io.dataset_config import FILE, DatasetSpec, ListSpec
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.os_errors import explain_error


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

    Args:
        spec: What the ``dataset.yaml`` says.
        paths: Resolves its paths.
        runs: Names of the runs; None = all.
        rerankers: Names of the rerank lists; None = all.
        refined: Take the file of the refined queries where a list has one.
    """

    def find_file(kind: str, name: str, run: ListSpec) -> Path:
        if refined and run.refined is not None:
            return paths.existing(run.refined, kind, name, "refined")
        return paths.existing(run.path, kind, name, "path")

    run_files = [
        FileRequest(
            find_file("runs", name, run),
            name,
            frozenset(run.roles),
            run.read_options,
            layout=run.layout,
        )
        for name, run in spec.runs.items()
        if runs is None or name in runs
    ]
    rerank_files = [
        FileRequest(
            find_file("rerank", name, run),
            name,
            read_options=run.read_options,
            score_space=run.score_space,
            layout=run.layout,
        )
        for name, run in spec.rerank.items()
        if rerankers is None or name in rerankers
    ]
    return run_files, rerank_files


def name_lists(
    run_files: Iterable[FileRequest], rerank_files: Iterable[FileRequest]
) -> dict[str, FileRequest]:
    """The files of lists by ``runs/NAME`` and ``rerank/NAME``."""
    runs = {f"runs/{file.name}": file for file in run_files}
    return runs | {f"rerank/{file.name}": file for file in rerank_files}


def request_judges(spec: DatasetSpec, paths: DatasetPaths) -> dict[str, FileRequest]:
    """The files of the further judges: ``judges/NAME`` → the file, which must be there."""
    return {
        f"judges/{name}": FileRequest(
            paths.existing(judge.path, "judges", name, "path"), name, layout=judge.layout
        )
        for name, judge in spec.judges.items()
    }

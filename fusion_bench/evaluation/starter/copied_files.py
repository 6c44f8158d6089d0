"""Copies of the files that a saved dataset names, in its own folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.io.provenance import meta_path
from fusion_bench.util.files.atomic_files import make_write_error, open_atomic
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.files.regular_files import open_regular


class Copies:
    """Files to copy into a folder, unless they are there."""

    def __init__(self, folder: Path, option: str) -> None:
        self.folder, self._option = folder, option
        self.targets: dict[Path, Path] = {}

    def add(self, path: Path, name: str) -> str:
        """Plan the copy of a file, and of the record beside a rerank list.

        Returns:
            Its path below the folder.

        Raises:
            ConfigError: Another file is in the way.
        """
        root = resolve_path(self.folder)
        if resolve_path(path).is_relative_to(root):
            return resolve_path(path).relative_to(root).as_posix()
        target = self.folder / f"{name}{_format_suffixes(path)}"
        for source, place in ((path, target), (meta_path(path), meta_path(target))):
            if source.exists():
                if place.exists():
                    raise ConfigError(
                        f"{self._option} {self.folder}: {place} exists: name another folder"
                    )
                if str(place).lower() in {str(taken).lower() for taken in self.targets}:
                    raise ConfigError(
                        f"{self._option} {self.folder}: {place} is another list's file where "
                        "case does not count: rename one list"
                    )
                self.targets[place] = source
        return target.relative_to(self.folder).as_posix()

    def write(self) -> list[Path]:
        """Copy what was planned."""
        for target, source in self.targets.items():
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target)
                else:
                    with open_regular(source) as original, open_atomic(target) as copy:
                        shutil.copyfileobj(original, copy)
            except shutil.Error as error:  # of several files of a folder
                raise FusionBenchError(f"{target}: cannot be written: {error}") from error
            except OSError as error:
                raise make_write_error(target, error) from error
        return list(self.targets)


def _format_suffixes(path: Path) -> str:
    """What tells the format: ``.trec.gz``, ``.jsonl``."""
    kept = path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    return "".join(kept)

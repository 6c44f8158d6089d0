"""Where named datasets are, and what a path stands for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from fusion_bench.errors import ConfigError, UnknownNameError, did_you_mean
from fusion_bench.io.dataset_config import FILE
from fusion_bench.util.files.real_paths import resolve_path


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

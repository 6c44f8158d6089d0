"""Paths of files: without links, as reports show them, as git tracks or ignores them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.errors import ConfigError, FusionBenchError


def resolve_path(path: Path) -> Path:
    """The absolute path without links, as ``Path.resolve``; links in a circle stay.

    ``Path.resolve`` refuses those in Python 3.11 and 3.12. Whatever opens the file says why it
    cannot.
    """
    return Path(os.path.realpath(path))


def show_path(path: Path) -> str:
    """A path relative to the working directory, with ``/``.

    A relative path stays as it is given. Of an absolute one beyond the working directory only the
    name is left, as its folders may name a user or a machine.
    """
    if not path.is_absolute():
        return path.as_posix()
    place, folder = resolve_path(path), resolve_path(Path())
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else path.name


GITIGNORE = "# fusion-bench made this folder for its outputs.\n*\n"
#: Folders of these names hold baselines, which are committed.
COMMITTED = {"reports", "baselines"}


def name_experiment(path: Path) -> str:
    """What an experiment's reports and baseline are named by: its file, or its folder.

    ``try --save mine`` writes ``mine/experiment.yaml``; a file of that name is named ``mine``.
    """
    name = resolve_path(path).parent.name if path.stem == "experiment" else path.stem
    return name.strip(".") or "experiment"  # "...yaml" is a file, ".." another folder


def make_output_folder(folder: Path, *, committed: Sequence[Path] = ()) -> Path:
    """Make a folder for outputs; one that is new gets a ``.gitignore`` for all of it.

    A folder that exists is left as it is, and so is one that is to hold committed files.

    Args:
        folder: The folder.
        committed: Files that git must see wherever they are.

    Raises:
        OSError: It cannot be made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return folder
    place = resolve_path(folder)
    if place.name not in COMMITTED and not any(
        resolve_path(file).is_relative_to(place) for file in committed
    ):
        (folder / ".gitignore").write_text(GITIGNORE, encoding="utf-8")
    return folder


def require_visible(path: Path) -> None:
    """Refuse a place below a folder of outputs, where git would not see a file.

    Raises:
        FusionBenchError: Names the ``.gitignore``.
    """
    for folder in resolve_path(path).parents:
        file = folder / ".gitignore"
        if file.is_file() and file.read_text(encoding="utf-8", errors="replace") == GITIGNORE:
            raise FusionBenchError(
                f"{path}: {file} keeps git from seeing it: choose another folder, or delete that "
                ".gitignore"
            )


def is_untracked(folder: Path) -> bool:
    """Whether git says that it tracks nothing in a folder; False where it cannot be asked."""
    place = resolve_path(folder)
    root = _find_root(place)
    if root is None:
        return False
    name = place.relative_to(root).as_posix()
    # A file system may ignore case, and a name may hold wildcards.
    return _ask_git(root, "ls-files", "-z", "--", f":(literal,icase){name}") == b""


def read_committed(path: Path, commit: str) -> bytes | None:
    """What a file held at a commit; None where the commit has no such file.

    Links are not followed: a link that was put in the place of the file is another file.

    Raises:
        ConfigError: git knows no such commit, or the file is in no repository.
    """
    place = Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` follows links
    root = _find_root(place.parent)
    if (
        root is None
        or commit.startswith("-")
        or not _ask_git(root, "rev-parse", "--verify", f"{commit}^0")
    ):
        raise ConfigError(
            f"--base {commit}: {path}: git finds no such commit here: name a branch, a tag or a "
            "commit of its repository, such as HEAD; a shallow clone may lack it"
        )
    name = place.relative_to(root).as_posix()
    return _ask_git(root, "cat-file", "blob", f"{commit}:{name}")


def _find_root(folder: Path) -> Path | None:
    """The work tree of a folder. git would also take a bare repository that was committed."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _ask_git(root: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails or is not installed."""
    # Hooks have variables set that name another repository, or change what a path means.
    kept = {n: v for n, v in os.environ.items() if n[:4] != "GIT_" or n.startswith("GIT_CONFIG")}
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours, a commit cannot be an option
            ["git", "-C", str(root), *words],  # noqa: S607 - the user's git
            env=kept | {"GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return done.stdout

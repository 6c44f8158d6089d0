"""Questions to git: what it tracks, and what a file held at an earlier commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.util.files.real_paths import resolve_path


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

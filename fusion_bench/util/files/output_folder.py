"""Folders of outputs, which git ignores where a command made them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files.real_paths import resolve_path

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

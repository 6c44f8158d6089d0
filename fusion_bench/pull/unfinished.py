"""The folder of an unfinished pull: what was answered, so that it need not be asked again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fusion_bench.pull.dataset_file import DATASET_FILE, finish_replacement
from fusion_bench.pull.store import PullStore
from fusion_bench.pull.write_folder import check_folder
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.util.files.folder_lock import lock_folder

#: Folder of the answers, in the dataset's folder.
UNFINISHED: Final = ".pull"
ANSWERS: Final = "answers.sqlite"


def check_unfinished(out: Path, *, start_over: bool) -> None:
    """Refuse a folder whose dataset this pull may not replace.

    It may where it starts over, or where the answers of an unfinished pull are there.

    Raises:
        ConfigError: It may not, or a file is in the way.
    """
    check_folder(out, replace=start_over or (out / UNFINISHED / ANSWERS).exists())


@dataclass
class Stores:
    """What an unfinished pull keeps.

    Attributes:
        answers: Of the engine.
        vectors: Of encoders.
        is_done: Whether nothing is left to ask.
    """

    answers: PullStore
    vectors: AnswerStore
    is_done: bool = False

    @property
    def is_used(self) -> bool:
        """Whether anything was asked that the next pull need not ask."""
        is_filled = self.answers.read_identity() is not None or not self.vectors.is_empty()
        return is_filled and not self.is_done


@contextmanager
def open_stores(out: Path, *, start_over: bool) -> Iterator[Stores]:
    """The answers of the engine and those of encoders; one pull at a time uses them.

    Args:
        out: The dataset's folder, made if need be.
        start_over: Whether answers of an earlier pull are forgotten.

    Raises:
        FusionBenchError: The folder cannot be used, or holds what this pull may not replace.
    """
    folder = out / UNFINISHED
    is_new, is_used = not out.exists(), False
    with lock_folder(out, "another pull uses it"):
        check_unfinished(out, start_over=start_over)  # another pull may just have ended
        finish_replacement(out)
        if start_over:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        try:
            with (
                closing(PullStore(folder / ANSWERS)) as answers,
                closing(AnswerStore(folder / "vectors.sqlite")) as vectors,
            ):
                stores = Stores(answers, vectors)
                try:
                    yield stores
                finally:
                    is_used = stores.is_used
        finally:
            if not is_used:
                shutil.rmtree(folder, ignore_errors=True)
            if is_new and not is_used and not (out / DATASET_FILE).exists():
                shutil.rmtree(out, ignore_errors=True)  # nothing was asked: leave nothing

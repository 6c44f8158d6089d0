"""The ``dataset.yaml`` of a pulled dataset, and how one pull's files take the place of another's.

The file is what makes a dataset: it names all others. New files are first written whole into a
folder of their own, :data:`STAGED`. Then a ``dataset.yaml`` that names them there replaces the old
one, in one step: from now on the dataset is the new one. Last, the files get their usual names, and
the ``dataset.yaml`` follows. A process that is killed at any time leaves one dataset or the other,
and the next pull does what is left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.io.outputs import RECORD
from fusion_bench.util.files.atomic_files import make_write_error, write_atomic
from fusion_bench.util.files.drafts import UNFINISHED
from fusion_bench.util.yaml_text import format_compact_yaml

DATASET_FILE: Final = "dataset.yaml"
WRITTEN_BY: Final = "# Written by: fusion-bench pull\n"
#: Folder of the new files, in the dataset's folder.
STAGED: Final = ".pull-new"


def read_dataset_file(folder: Path) -> dict[str, Any]:
    """The keys of the ``dataset.yaml``; empty where there is none.

    Raises:
        ConfigError: It cannot be read, or is no mapping.
    """
    path = folder / DATASET_FILE
    return dict(read_yaml(path).data) if path.exists() else {}


def write_dataset_file(folder: Path, data: Mapping[str, Any]) -> Path:
    """Write the ``dataset.yaml``, with what to do where nothing is judged.

    Raises:
        FusionBenchError: It cannot be written.
    """
    hint = ""
    if "qrels" not in data:
        command = f"fusion-bench judge {quote(str(folder))}"
        hint = f"# Pulled without judgments. '{command}' makes them; then add 'qrels: FILE'.\n"
    text = f"{WRITTEN_BY}{hint}{format_compact_yaml(dict(data))}"
    return write_atomic(folder / DATASET_FILE, text.encode())


def finish_replacement(folder: Path) -> None:
    """Give new files their usual names, and remove those that no ``dataset.yaml`` names.

    Raises:
        FusionBenchError: A file cannot be written; the dataset is whole all the same.
    """
    staged = folder / STAGED
    if not staged.is_dir():
        return
    data = read_dataset_file(folder)
    final = _remove_prefix(data)
    if final != data:
        try:
            for file in sorted(path for path in staged.rglob("*") if path.is_file()):
                if file.name != RECORD:  # which the folder has of other files
                    _place_file(file, folder / file.relative_to(staged))
        except OSError as error:
            raise make_write_error(folder, error) from error
        write_dataset_file(folder, final)
    shutil.rmtree(staged, ignore_errors=True)


def _remove_prefix(value: Any) -> Any:  # noqa: ANN401 - of YAML
    """A value of the ``dataset.yaml`` with the usual names of the files."""
    if isinstance(value, Mapping):
        return {key: _remove_prefix(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_remove_prefix(each) for each in value]
    return value.removeprefix(f"{STAGED}/") if isinstance(value, str) else value


def _place_file(file: Path, target: Path) -> None:
    """Give a file a second name, in place of what had it; a copy where there are no second names.

    Raises:
        OSError: The file cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}{UNFINISHED}")
    draft.unlink(missing_ok=True)  # of a killed process
    try:
        os.link(file, draft)
    except OSError:
        shutil.copyfile(file, draft)
    try:
        os.replace(draft, target)  # noqa: PTH105 - atomic, as it promises
    finally:
        with suppress(FileNotFoundError):  # where both were names of one file, none is replaced
            draft.unlink()

"""Files that options name: new, or an earlier output of this program.

The digest of an output is on record beside it, in :data:`RECORD`, before the output is in place. So
a file that is not as a command wrote it is told from one that is, and stays without ``--force``.
Inputs of a command and the files of a dataset stay in any case.

Each line of the record is ``{"file": NAME, "sha256": DIGEST}``; older lines of a file are harmless.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Final, NamedTuple

from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.io.provenance import read_meta
from fusion_bench.util.files import (
    append_whole,
    make_output_folder,
    make_write_error,
    open_regular,
    read_regular,
    replace_files,
    resolve_path,
    show_path,
    write_atomic,
)
from fusion_bench.util.json_text import encode_json_lines

#: The hidden file beside outputs that has their digests.
RECORD: Final = ".fusion-bench-outputs.jsonl"
DATASET_FILE: Final = "dataset.yaml"
#: Folders in that of a dataset in which every file is a judge's.
JUDGES: Final = frozenset({"judgments", "machine-judgments"})


class _Command(NamedTuple):
    """The command that runs: what its options name, what it reads, and ``--force``."""

    outputs: Mapping[str, Path]
    inputs: set[Path]
    is_forced: bool


_COMMAND: ContextVar[_Command | None] = ContextVar("the command that writes", default=None)


@contextmanager
def guard_outputs(
    outputs: Mapping[str, Path],
    inputs: Iterable[Path],
    *,
    is_forced: bool,
    checked: AbstractSet[str] = frozenset(),
) -> Iterator[None]:
    """Refuse, while the context lasts, to write what :func:`check_output` refuses.

    Outside of one, whoever calls the functions of this module may replace any file.

    Args:
        outputs: Option → the file or folder that it names.
        inputs: What the command reads, as far as its options name it.
        is_forced: Whether a file may be replaced that is no earlier output.
        checked: Options whose files are checked at once.

    Raises:
        ConfigError: One of the files stays, or two options name one.
    """
    token = _COMMAND.set(_Command(outputs, set(), is_forced))
    try:
        refuse_inputs(inputs)
        if len(set(map(resolve_path, outputs.values()))) < len(outputs):
            raise ConfigError(f"{', '.join(outputs)}: two of them name the same file")
        for option in outputs.keys() & checked:
            path = outputs[option]
            check_output(path, option=option, is_owned=is_earlier_output(path))
        yield
    finally:
        _COMMAND.reset(token)


def refuse_inputs(inputs: Iterable[Path | None]) -> None:
    """Add to what the running command reads: none of it is replaced, not even with ``--force``.

    Args:
        inputs: Files, and folders of lists; None = not given.

    Raises:
        ConfigError: One of its options names one of them, or a file in such a folder.
    """
    command = _COMMAND.get()
    if command is None or not command.outputs:
        return
    command.inputs.update(map(resolve_path, filter(None, inputs)))
    for option, path in command.outputs.items():
        _refuse_input(path, option, command)


def _refuse_input(path: Path, option: str, command: _Command) -> None:
    file = resolve_path(path)
    if not command.inputs.isdisjoint((file, *file.parents)):
        raise ConfigError(
            f"{option}: {path} would replace an input of this command: name another file"
        )


def check_output(path: Path, *, option: str = "--out", is_owned: bool = False) -> None:
    """Decide whether the running command may write a file.

    It may if the file is new or an earlier output; with ``--force`` also another one, but for what
    the command reads and what belongs to a dataset.

    Args:
        path: The file.
        option: What names it, for messages.
        is_owned: Whether the command owns the file, if it belongs to a dataset.

    Raises:
        ConfigError: It may not.
        FusionBenchError: The file cannot be read.
    """
    command = _COMMAND.get()
    if command is None:
        return
    _refuse_input(path, option, command)
    digest = _digest_file(path)
    is_new = digest is None
    file = resolve_path(path)
    datasets = (folder / DATASET_FILE for folder in (() if is_owned else file.parents))
    # A new file belongs to a dataset if it would be another repeat of a list, or a judge's.
    owner = next((each for each in datasets if _has_file(each, file, is_new=is_new)), None)
    if owner is not None:
        raise ConfigError(
            f"{option}: {path} is one of the files of {show_path(owner)}, or would become one: "
            "name another file"
        )
    if not (is_new or command.is_forced or _is_recorded(path, digest)):
        raise ConfigError(
            f"{option}: {path} is there, and this program did not write it as it is: name another "
            "file, or add --force to replace it"
        )


def is_earlier_output(path: Path) -> bool:
    """Whether a file is as a command wrote it; raises FusionBenchError where it cannot be read."""
    return _is_recorded(path, _digest_file(path))


def _is_recorded(path: Path, digest: str | None) -> bool:
    """Whether a command wrote a file of this digest; None = there is no file."""
    if digest is None or digest in _read_digests(path):
        return digest is not None
    with suppress(FusionBenchError):
        return read_meta(path) is not None  # a list of scores and its provenance
    return False


def write_output(path: Path, data: bytes, *, option: str = "--out", is_owned: bool = False) -> Path:
    """Write a file that an option names; arguments and errors as for :func:`check_output`."""
    check_output(path, option=option, is_owned=is_owned)
    record_output(path, data)
    return write_atomic(path, data)


def write_outputs(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files that belong together, as :func:`replace_files` does; all are checked first.

    Raises:
        ConfigError: One of them stays.
        FusionBenchError: One cannot be written.
    """
    for name in contents:
        check_output(folder / name)
    for name, data in contents.items():
        record_output(folder / name, data)
    try:
        return replace_files(folder, contents)
    except OSError as error:
        raise make_write_error(folder, error) from error


def write_files(
    folder: Path,
    texts: Mapping[str, str],
    figures: Mapping[str, bytes] | None = None,
    *,
    committed: Sequence[Path] = (),
) -> list[Path]:
    """Write texts and figures, all of which are made before anything is written.

    The first text is the record of the set: where it is there, the other files belong to it.

    Args:
        folder: Where to; created if missing.
        texts: File name → text.
        figures: File name → contents.
        committed: Files that git must see wherever they are.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    contents = {name: text.encode() for name, text in texts.items()} | dict(figures or {})
    try:
        make_output_folder(folder, committed=committed)
    except OSError as error:
        raise make_write_error(folder, error) from error
    return write_outputs(folder, contents)


def record_output(path: Path, data: bytes) -> None:
    """Put on record that a file of this content may be replaced; raises FusionBenchError."""
    entry = {"file": path.name, "sha256": hashlib.sha256(data).hexdigest()}
    if entry["sha256"] not in _read_digests(path):
        append_whole(path.with_name(RECORD), encode_json_lines([entry]))


def _digest_file(path: Path) -> str | None:
    """SHA-256 of a file; None where there is none."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise make_write_error(path, error) from error


def _read_digests(path: Path) -> set[str]:
    """What the record says of a file; a line that cannot be read says nothing."""
    digests = dict[object, set[str]]()
    with suppress(OSError):
        for line in read_regular(path.with_name(RECORD)).splitlines():
            with suppress(ValueError, TypeError, KeyError, RecursionError):
                entry = json.loads(line)
                digests.setdefault(entry["file"], set()).add(str(entry["sha256"]))
    return digests.get(path.name, set())


def _has_file(dataset: Path, file: Path, *, is_new: bool) -> bool:
    from fusion_bench.io.dataset_config import read_spec, would_match

    if not dataset.is_file():
        return False
    if file == dataset or file.relative_to(dataset.parent).parts[0] in JUDGES:
        return True
    try:
        spec, _ = read_spec(dataset)
    except FusionBenchError:
        return not is_new  # it may name the file
    if is_new:
        return any(would_match(dataset.parent, given, file) for given in spec.files)
    named = map(resolve_path, spec.file_paths(dataset.parent))
    return any(file.is_relative_to(each) for each in named)

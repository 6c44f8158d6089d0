"""Files: how they are opened, written whole, locked, told apart by their paths.

Opening a named pipe waits until somebody writes into it, and a device may have no end.

A process holds a lock on each of its drafts. The system releases the lock of a killed process, so
the next one that writes to the folder can tell its drafts and remove them.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import io
import logging
import os
import secrets
import shutil
import stat
import string
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

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


def baseline_path(experiment: Path) -> Path:
    """The default file of an experiment's baseline: ``reports/baselines/NAME.json``."""
    return Path("reports", "baselines", f"{name_experiment(experiment)}.json")


def make_output_folder(folder: Path, *, committed: Sequence[Path] = ()) -> Path:
    """Make a folder for outputs; one that is new gets a ``.gitignore`` for all of it.

    A folder that exists is left as it is, unless it only holds such folders (``tune`` makes
    ``reports/NAME/tuning``), and so is one that is to hold committed files.

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
        inside = list(folder.iterdir())
        if not inside or not all((each / ".gitignore").is_file() for each in inside):
            return folder
    place = resolve_path(folder)
    if place.name not in COMMITTED and not any(
        resolve_path(file).is_relative_to(place) for file in committed
    ):
        (folder / ".gitignore").write_text(GITIGNORE, encoding="utf-8")
    return folder


def is_untracked(folder: Path) -> bool:
    """Whether every repository around a folder tracks nothing in it; False if git cannot say."""
    place = resolve_path(folder)
    try:
        roots = _find_roots(place)
    except ConfigError:
        return False
    # A file system may ignore case, and a name may hold wildcards.
    names = {root: f":(literal,icase){place.relative_to(root).as_posix()}" for root in roots}
    answers = {_ask_git(root, "ls-files", "-z", "--", name) for root, name in names.items()}
    return answers == {b""}


def read_committed(path: Path, commit: str) -> bytes | None:
    """Return what a file held at a commit; None if the commit has no such file.

    Raises:
        ConfigError: No repository knows the commit, or two hold different files there.
    """
    copies = read_committed_copies(path, commit)
    if copies is None:
        raise ConfigError(
            f"--base {commit}: {path}: git finds no such commit here: name a branch, a tag or a "
            "commit of its repository, such as HEAD; a shallow clone may lack it"
        )
    if len({*copies.values()}) > 1:
        roots = " and ".join(sorted({str(root) for root in copies}))
        raise ConfigError(
            f"--base {commit}: {path}: the repositories {roots} hold different files: remove the "
            "'.git' of the one that is not your project's"
        )
    return next(iter(copies.values()), None)


def read_committed_copies(path: Path, commit: str) -> dict[Path, bytes] | None:
    """Return what each repository around a file holds of it at a commit.

    A link in the place of the file is another file. A folder that is a link is both: what the link
    replaced, and the folder that it leads to.

    Args:
        path: The file.
        commit: A name of it that each repository reads for itself.

    Returns:
        Root of a work tree → the file's bytes; None if no repository knows the commit.

    Raises:
        ConfigError: git does not accept a repository that lies in another one.
    """
    copies: dict[Path, bytes] = {}
    is_known = False
    # The absolute path as given, then with one link after another among its folders replaced.
    places = [Path(os.path.abspath(path))]  # noqa: PTH100 - `resolve` follows links
    while link := next((each for each in reversed(places[-1].parents) if each.is_symlink()), None):
        target = link.parent / link.readlink() / places[-1].relative_to(link)
        following = Path(os.path.abspath(target))  # noqa: PTH100
        if following in places:
            break
        places.append(following)
    for place in places:
        for root in _find_roots(place.parent):
            if commit.startswith("-") or not _ask_git(root, "rev-parse", "--verify", f"{commit}^0"):
                continue
            is_known = True
            name = place.relative_to(root).as_posix()
            data = _ask_git(root, "cat-file", "blob", f"{commit}:{name}")
            if data is not None:
                copies[root] = data
    return copies if is_known else None


def _find_roots(folder: Path) -> list[Path]:
    """The work trees around a folder, the innermost first.

    A bare repository that was committed is none, though git would accept it. A ``.git`` that git
    does not accept is none either, if no other is above it.

    Raises:
        ConfigError: Another one is above it.
    """
    if shutil.which("git") is None:
        return []
    roots = [each for each in (folder, *folder.parents) if (each / ".git").exists()]
    for root in roots:
        top = _ask_git(root, "rev-parse", "--show-toplevel")
        if top is not None and Path(os.fsdecode(top[:-1])).samefile(root):
            continue
        if root == roots[-1]:
            return roots[:-1]
        raise ConfigError(
            f"{root / '.git'}: git does not accept it as a repository, and {roots[-1]} has "
            f"another one: remove it if it is not yours; 'git -C {root} status' prints the reason"
        )
    return roots


def _ask_git(root: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails or is not installed."""
    # Hooks have variables set that name another repository, or change what a path means.
    kept = {n: v for n, v in os.environ.items() if n[:4] != "GIT_" or n.startswith("GIT_CONFIG")}
    try:
        done = subprocess.run(  # noqa: S603 - the words are ours, a commit cannot be an option
            ["git", "-C", str(root), *words],  # noqa: S607 - the user's git
            env=kept | {"GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return done.stdout


def explain_error(error: BaseException) -> str:
    """Why something failed, without the number and the file that Python adds to an OSError."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


#: Kind of what is no regular file, by a test of its mode.
KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class IrregularFileError(OSError):
    """What bears the name of a file is none; the message says what it is."""

    def __str__(self) -> str:
        return str(self.strerror)


def check_regular(path: Path) -> None:
    """Refuse what is neither a regular file nor a folder; what does not exist passes.

    Raises:
        IrregularFileError: It is a named pipe, a socket or a device.
        OSError: It cannot be asked.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    for is_kind, name in KINDS:
        if is_kind(mode):
            raise IrregularFileError(errno.EINVAL, f"{name}, and a file is needed", str(path))


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading.

    Raises:
        IrregularFileError: It is none.
        OSError: It cannot be opened.
    """
    check_regular(path)
    if path.is_dir():
        raise IrregularFileError(errno.EISDIR, "a folder, and a file is needed", str(path))
    return open(path, "rb", opener=_open_without_waiting)


def open_regular_text(path: Path) -> IO[str]:
    r"""Open a regular file of UTF-8 text; line ends of any system are read as ``\n``."""
    return io.TextIOWrapper(open_regular(path), encoding="utf-8")


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; raises OSError."""
    with open_regular(path) as file:
        return file.read()


def read_regular_text(path: Path) -> str:
    r"""The text of a regular file in UTF-8, with ``\n`` as line ends; raises OSError."""
    try:
        with open_regular_text(path) as file:
            return file.read()
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text at byte {error.start}"
        raise IrregularFileError(errno.EILSEQ, problem, str(path)) from None


def _open_without_waiting(path: str, flags: int) -> int:
    """Whatever has taken the file's place since it was checked is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_prompt_file(
    path: Path, what: str, fields: Collection[str], required: Collection[str], advice: str
) -> str:
    """The text of a file with ``{fields}``.

    Args:
        path: The file.
        what: What it holds, for messages, such as ``rubric``.
        fields: Those that it may have, without layout or conversion.
        required: Those that it cannot do without.
        advice: What such a file looks like, for messages.

    Raises:
        ValueError: It cannot be read, or is no template with these fields.
    """
    try:
        text = read_regular_text(path)
    except OSError as error:
        problem = f"{path}: the {what} cannot be read ({error.strerror}): name a text file"
        raise ValueError(problem) from None
    try:
        parts = [part for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError as error:
        raise ValueError(f"{path}: {error}: {advice}") from None
    for _, name, layout, conversion in parts:
        if name not in fields or layout or conversion:
            suffix = f"!{conversion}" if conversion else f":{layout}" if layout else ""
            raise ValueError(f"{path}: {{{name}{suffix}}} is no field of a {what}: {advice}")
    if missing := [name for name in required if name not in {part[1] for part in parts}]:
        raise ValueError(f"{path}: the {what} lacks {{{missing[0]}}}: {advice}")
    return text


def has_locks() -> bool:
    """Whether this system has such locks, which only POSIX systems do."""
    return importlib.util.find_spec("fcntl") is not None


def take_lock(path: Path, *, wait: bool = False) -> int | None:
    """Take the lock of a file or folder that is there.

    Args:
        path: The file or folder.
        wait: Wait for another process that holds the lock.

    Returns:
        The descriptor that holds the lock until it is closed. None: another process holds the lock,
        or has deleted the file meanwhile.

    Raises:
        OSError: There is no such file, or its file system has no locks.
    """
    try:
        import fcntl  # POSIX only
    except ImportError:  # pragma: no cover
        raise OSError(errno.ENOLCK, "no locks on this system", str(path)) from None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        is_there = os.path.samestat(os.fstat(handle), path.stat())
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    except BaseException:
        os.close(handle)
        raise
    if is_there:
        return handle
    os.close(handle)
    return None


log = logging.getLogger("fusion_bench")


@contextmanager
def lock_folder(folder: Path, conflict: str | None = None) -> Iterator[None]:
    """Hold the lock of a folder, which is made if need be.

    It ends with the process, however that ends, and leaves no file. Without ``fcntl``, which only
    POSIX systems have, there is no lock.

    Args:
        folder: The folder.
        conflict: Why another process may hold the lock for long: said before waiting for it.

    Raises:
        FusionBenchError: The folder cannot be made, opened or locked.
    """
    handle, waits = None, conflict is None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        while has_locks() and (handle := take_lock(folder, wait=waits)) is None:
            if not waits:  # else the folder was deleted meanwhile
                log.warning("%s: %s: waiting for its end", folder, conflict)
            waits = True
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FusionBenchError(f"{folder}: cannot be used: {explain_error(error)}") from error
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


#: Names of drafts end so, and start with a dot.
UNFINISHED: Final = ".part"
#: Seconds after which nobody is writing a draft any more, where the file system has no locks.
ABANDONED: Final = 3600


@contextlib.contextmanager
def make_draft(parent: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """An empty file or folder under a name of its own, removed in the end if it is still there.

    Raises:
        OSError: The folder cannot be written to.
    """
    remove_abandoned_once(parent.absolute())
    lock = None
    while lock is None:
        draft = parent / f".{secrets.token_hex(8)}{UNFINISHED}"
        if is_folder:
            draft.mkdir()
        else:
            draft.touch(exist_ok=False)
        try:
            lock = take_lock(draft)
        except FileNotFoundError:
            continue  # removed before it had a lock
        except OSError:
            break  # there are no locks
    try:
        yield draft
    finally:
        _remove_draft(draft)
        if lock is not None:
            os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the drafts that killed processes left in a folder.

    Raises:
        OSError: The folder cannot be read.
    """
    for draft in parent.glob(f".*{UNFINISHED}"):
        try:
            lock = take_lock(draft)
        except FileNotFoundError:
            continue
        except OSError:
            if draft.lstat().st_mtime + ABANDONED < time.time():
                _remove_draft(draft)
            continue
        if lock is not None:
            _remove_draft(draft)
            os.close(lock)


@cache
def remove_abandoned_once(parent: Path) -> None:
    """Remove abandoned drafts once in each process: listing a large folder takes time."""
    with contextlib.suppress(OSError):
        remove_abandoned(parent)


def _remove_draft(draft: Path) -> None:
    if draft.is_dir() and not draft.is_symlink():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            draft.unlink()


def require_folder(folder: Path, option: str = "--out") -> Path:
    """The folder itself, checked before the work begins.

    Args:
        folder: Where to write.
        option: What names it, for messages.

    Raises:
        ConfigError: A file is in the way.
    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"{option} {folder}: {path} is a file: name a folder")
    return folder


def write_atomic(path: Path, data: bytes) -> Path:
    """Write a file under another name and move it into place; its folder is made if need be.

    Raises:
        FusionBenchError: The place cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_regular(path)
        return replace_file(path, data)
    except OSError as error:
        raise make_write_error(path, error) from error


def append_whole(path: Path, data: bytes) -> None:
    """Append data that outlive a power cut to a file, all or none; it is made, as is its folder.

    Raises:
        FusionBenchError: The file cannot be written to; it is as it was.
    """
    size = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            size = file.tell()
            _write_through(file, data)
    except OSError as error:
        if size is not None:
            with suppress(OSError):
                os.truncate(path, size)
        raise make_write_error(path, error) from error


def make_write_error(path: Path, error: OSError) -> FusionBenchError:
    """What to raise where a file, or one below a folder, cannot be written."""
    is_below = isinstance(error.filename, str) and Path(error.filename).is_relative_to(path)
    place = error.filename if is_below else path
    return FusionBenchError(f"{place}: cannot be written: {error.strerror or error}")


def replace_file(path: Path, data: bytes) -> Path:
    """Replace a file at once, for callers with their own words: raises OSError."""
    with open_atomic(path) as file:
        _write_through(file, data)
    return path


def replace_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files that belong together; raises OSError.

    The first is the record of the set. It is absent while the others are replaced, so where it is
    there, all files belong to it. All are written whole before any is replaced. Where one cannot be
    replaced, those that were come back, the record last.

    Args:
        folder: Where to; it is there.
        contents: File name → data.

    Returns:
        Their paths, in order.
    """
    paths = [folder / name for name in contents]
    for path in paths:
        check_regular(path)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with (
        _name_file(folder),
        make_draft(folder, is_folder=True) as draft,
        make_draft(folder, is_folder=True) as previous,
    ):
        for path, data in zip(paths, contents.values(), strict=True):
            with _name_file(path), (draft / path.name).open("xb") as file:
                _write_through(file, data)
        record, *others = paths
        replaced: list[tuple[Path, Path | None]] = []
        try:
            replaced.append((record, _keep_old_file(record, previous)))
            record.unlink(missing_ok=True)
            for path in others:
                old = _keep_old_file(path, previous)
                with _name_file(path):
                    os.replace(draft / path.name, path)  # noqa: PTH105 - atomic, as it promises
                replaced.append((path, old))
            with _name_file(record):
                os.replace(draft / record.name, record)  # noqa: PTH105
        except OSError:
            for path, old in reversed(replaced):
                if old is None:
                    path.unlink(missing_ok=True)
                else:
                    os.replace(old, path)  # noqa: PTH105
            raise
    return paths


def _keep_old_file(path: Path, folder: Path) -> Path | None:
    """A second name of a file, or a copy where there are no second names; None = no such file."""
    old = folder / path.name
    try:
        os.link(path, old)
    except FileNotFoundError:
        return None
    except OSError:
        shutil.copyfile(path, old)
    return old


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """A file under another name, moved into place when all went well; raises OSError."""
    with _name_file(path), make_draft(path.parent) as draft:
        with draft.open("wb") as file:
            yield file
        os.replace(draft, path)  # noqa: PTH105


@contextmanager
def _name_file(path: Path) -> Iterator[None]:
    """Name the file in an error, and not its draft."""
    try:
        yield
    except OSError as error:
        if error.filename is None or UNFINISHED in str(error.filename):
            error.filename = str(path)
        raise


def _write_through(file: IO[bytes], data: bytes) -> None:
    """Write data that outlive a power cut."""
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def require_free(folder: Path, names: Iterable[str], option: str = "--out") -> None:
    """Refuse a folder in which a file would be overwritten, before the work begins.

    Args:
        folder: Where to write.
        names: The files to be written.
        option: What names the folder, for messages.

    Raises:
        ConfigError: It is a file, or holds one of these.
    """
    require_folder(folder, option)
    for name in names:
        if (folder / name).exists():
            raise ConfigError(f"{option} {folder}: {folder / name} exists: name another folder")


@contextlib.contextmanager
def remove_on_failure() -> Iterator[list[Path]]:
    """A list of new files and folders, removed again where the context fails.

    The caller adds each path before it writes there, and none that held something before.
    """
    paths: list[Path] = []
    try:
        yield paths
    except BaseException:
        for path in paths:
            with contextlib.suppress(OSError):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        raise

"""The record of an attack, and of how a command ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.edits import Edit, nothing


@dataclass(frozen=True)
class Attack:
    """What is attacked, and how it must end.

    Attributes:
        name: What a report of the tests calls it.
        arguments: Words of the command, without ``fusion-bench``.
        spoil: What is done to the prepared project before.
        environment: Variables of the environment.
        exit_code: How the command must end.
        says: What the error, or standard output where none is due, must hold.
        never: What neither stream nor any file that was written may hold.
        writes: Patterns of the files that may be written or changed (``reports/**``).
        next_exit_code: How the same command ends once the project is as it was before; None = the
            attack leaves nothing behind that could matter, and the command is not run again.
    """

    name: str
    arguments: tuple[str, ...]
    spoil: Edit = nothing
    environment: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 2
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    next_exit_code: int | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        code: Its exit code; that of a signal is negative.
        out: Standard output.
        err: Standard error, without lines of progress, which a slow machine brings about.
    """

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        lines = self.err.splitlines(keepends=True)
        kept = "".join(line for line in lines if not line.startswith("progress: "))
        object.__setattr__(self, "err", kept)

"""Every error that this package raises on purpose.

::

    FusionBenchError            could not do what was asked (exit code 2)
    ├── DataError               a file or a table breaks a rule
    ├── ConfigError             an experiment, a dataset.yaml or an option breaks a rule
    │   └── UnknownNameError    a name that nothing answers to; lists the known ones
    │       └── UnknownKeyError the same in square brackets; a KeyError too
    ├── AlignmentError          runs and judgements that do not belong together
    ├── DataCheckError          ids do not meet, or a list is not what it seems
    ├── MissingExtraError       an optional dependency is not installed
    ├── CostLimitError          the next call could cost more than was allowed
    └── ProviderError           a remote or local model did not answer as it should

A message is one line: where, the rule, what was given, what is allowed, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias


class FusionBenchError(Exception):
    """Base of all errors a user can cause; the command line prints it without a traceback."""

    @property
    def facts(self) -> dict[str, Any]:
        """What ``--json`` says beside the message."""
        return {}


class DataError(FusionBenchError):
    """A file or a table breaks a rule.

    Attributes:
        row: Index of the offending row in the table that was handed in, when there is one. A
            reader turns it into a line number.
    """

    def __init__(self, message: str, *, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class DataCheckError(FusionBenchError):
    """Nothing is concluded: document ids do not meet, or a check finds a list false.

    Attributes:
        obstacles: Each cause as a record: ``key``, ``kind``, ``text``, ``remedy``, ``lists``, …
    """

    def __init__(self, message: str, obstacles: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.obstacles = tuple(obstacles)

    @property
    def facts(self) -> dict[str, Any]:
        """What ``--json`` says beside the message."""
        return {"answer": "check the data", "obstacles": self.obstacles}


class ConfigError(FusionBenchError):
    """An experiment, a ``dataset.yaml`` or a command-line option breaks a rule."""


#: Most known names that a message lists where something else lists them all.
MOST_LISTED: Final = 20


class UnknownNameError(ConfigError):
    """A name that nothing answers to.

    Args:
        kind: What was looked up, such as ``"fusion method"``.
        name: What was given.
        known: What would have been found; a list keeps its order.
        where: Prefix that says where the name stands, such as ``"experiments/a.yaml: systems.x"``.
        remedy: What else can be done.
        similar: What may have been meant; by default those of ``known`` that are about as spelled.
        listed_by: What lists all names, where they are too many for a message.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        where: str = "",
        remedy: str = "",
        similar: Sequence[str] | None = None,
        listed_by: str = "",
    ) -> None:
        names = known if isinstance(known, list) else sorted(known)
        listed = f"known: {', '.join(names) if names else 'none'}"
        if listed_by and len(names) > MOST_LISTED:
            listed = f"{len(names)} are known: {listed_by} lists them"
        prefix = f"{where}: " if where else ""
        end = f": {remedy}" if remedy else ""
        hint = did_you_mean(name, names) if similar is None else format_hint(similar)
        super().__init__(f"{prefix}unknown {kind} {name!r}{hint} ({listed}){end}")


class UnknownKeyError(UnknownNameError, KeyError):
    """An unknown name in square brackets."""

    __str__ = Exception.__str__  # that of KeyError adds quotes


class AlignmentError(FusionBenchError):
    """Runs and judgements that do not belong together."""


class CostLimitError(FusionBenchError):
    """The next call could cost more than was allowed; nothing was spent on it."""


class MissingExtraError(FusionBenchError):
    """An optional dependency is not installed.

    Args:
        package: The import that failed.
        extra: The extra of this distribution that brings it.
        purpose: What needs it.
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: "
            f"pip install 'rank-fusion-bench[{extra}]'"
        )


#: How a call to a provider can fail: it was not reached; it took too long; it asked to wait; it
#: broke (5xx); its answer makes no sense; it will not do this ever (key, model, request); the
#: request was too large; the circuit breaker let nobody through.
FailureKind: TypeAlias = Literal[
    "connection",
    "timeout",
    "rate_limit",
    "server",
    "malformed",
    "refused",
    "too_large",
    "breaker",
]


class ProviderError(FusionBenchError):
    """A provider did not answer as it should.

    Attributes:
        kind: What went wrong, which decides what happens next.
        retry_after: Seconds after which the provider wants to be asked again, if it said so.
        is_billable: Whether the provider may bill the call: it has been sent, and the provider did
            not refuse it. By default a timeout and a malformed answer are.
        is_filtered: Whether the provider's content filter refused the request.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        retry_after: float | None = None,
        is_billable: bool | None = None,
        is_filtered: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.is_filtered = is_filtered
        self.retry_after = retry_after
        is_answered = kind in {"timeout", "malformed"}
        self.is_billable = is_answered if is_billable is None else is_billable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or with a second name that is about as near; empty = none is."""
    return format_hint(find_similar(name, known))


def find_similar(name: str, known: Iterable[str]) -> list[str]:
    """The known name that is spelled most like this one, and a second that is about as near.

    Capitals do not count.
    """
    import difflib  # not needed until something goes wrong

    by_lower_case: dict[str, list[str]] = {}
    for other in known:
        by_lower_case.setdefault(other.lower(), []).append(other)
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=2)
    near = [difflib.SequenceMatcher(None, other, name.lower()).ratio() for other in close]
    kept = (other for other, ratio in zip(close, near, strict=True) if ratio > near[0] - 0.1)
    return [other for lower in kept for other in by_lower_case[lower]]


def format_hint(names: Sequence[str]) -> str:
    """``; did you mean 'x' or 'y'?``; empty without names."""
    return f"; did you mean {' or '.join(map(repr, names))}?" if names else ""

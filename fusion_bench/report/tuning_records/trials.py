"""Parameters, trials and gains of a tuning run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fusion_bench.config.parameters import Parameter
from fusion_bench.evaluation.report_records.record import OptionalFloat, ReportRecord

#: What a parameter may be set to.
Value: TypeAlias = bool | int | float | str | None
#: What held-out queries allow to be said of tuned parameters; see ``tune.validation.verdict``.
TuningVerdict: TypeAlias = Literal[
    "unjudged decide",
    "too few tuning queries",
    "worse",
    "keep",
    "ship",
    "groups decide",
    "too few queries",
]

#: Two means of the same numbers differ by less.
MEAN_NOISE = 1e-9


class ParameterInfo(ReportRecord):
    """One thing that was tuned.

    Attributes:
        path: Where it stands in the system, as ``fusion.k``.
        kind: ``float``, ``int`` or ``choice``.
        low: Lower end of its range; None for a choice.
        high: Upper end.
        log: Whether it was searched on a logarithmic scale.
        choices: What a choice could be.
        condition: When it exists at all, in words; empty = always.
        default: What the default has; None where it does not exist there.
        ratio: Whether in the chosen system only its ratio to the other weights counts.
        reset: Mean over the tuning queries of the chosen system with this alone back at the
            default's value; None = it is there already, the default lacks it, or it cannot be
            computed.
    """

    path: str
    kind: Literal["float", "int", "choice"]
    low: float | None = None
    high: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    condition: str = ""
    default: Value = None
    ratio: bool = False
    reset: OptionalFloat = None

    @property
    def range(self) -> Parameter:
        """Its range as the search had it, without steps and conditions."""
        return Parameter(
            self.path, self.kind, self.low, self.high, log=self.log, choices=self.choices
        )


class Trial(ReportRecord):
    """One set of numbers that was tried.

    Attributes:
        number: In the order of the search.
        params: Path → value; a conditional parameter that does not exist is absent.
        value: Mean of the primary measure over the tuning queries; None = could not be computed.
        origin: ``default``, ``seed``, ``sampler`` or ``frozen``.
    """

    number: int
    params: dict[str, Value]
    value: OptionalFloat
    origin: str


class Gain(ReportRecord):
    """Tuned − default on one set of queries; see ``tune.validation.gains``.

    Attributes:
        default: Mean of the default.
        tuned: Mean of the tuned system.
        difference: Mean of tuned − default.
        low: Lower end of its interval; None with one group.
        high: Upper end.
        p: Two-sided, of the sign-flip test by group, and never below Student's; with several
            verdicts adjusted for them, as the interval is.
        sd: Standard error · √Q: N queries of the same grouping have a standard error of sd/√N.
        wins: Queries on which the tuned system is better.
        ties: Queries with equal values.
        losses: Queries on which the default is better.
        queries: Q.
        groups: Groups of queries; Q where none are declared.
        design_effect: Variance of the difference by group ÷ by query; None = no spread is known.
    """

    default: float
    tuned: float
    difference: float
    low: OptionalFloat
    high: OptionalFloat
    p: float
    sd: OptionalFloat
    wins: int
    ties: int
    losses: int
    queries: int
    groups: int
    design_effect: float | None = None

    @property
    def changed(self) -> int:
        """Queries whose value differs."""
        return self.wins + self.losses

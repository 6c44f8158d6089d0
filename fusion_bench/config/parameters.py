"""What can be tuned: one ``Parameter`` a number or choice; knows no optimizer.

A method declares its own parameters with paths relative to itself (``k``); a system puts its place
before them (``fusion.k``). A path is what stands in YAML, with two additions for tables that map a
rank limit to a value (``bonus``, ``tiers``), counted from 1: ``tiers.1.value`` is the value of the
first entry, ``tiers.1.ranks`` how many ranks it spans, so that limits never cross.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from fusion_bench.errors import ConfigError

Value: TypeAlias = float | int | str | bool | None
#: Path → value; only parameters that are active.
Params: TypeAlias = Mapping[str, Value]
Kind: TypeAlias = Literal["float", "int", "choice"]
#: Significant digits of a number that a search proposes: more would claim a care that it has not.
DIGITS: Final = 4


@dataclass(frozen=True)
class Parameter:
    """One dimension of a search space.

    Attributes:
        path: Where it stands in the system, dotted.
        kind: ``float``, ``int`` or ``choice``.
        low: Least value; None for a choice.
        high: Greatest value, itself allowed.
        step: Only low, low + step, …; None = every value (1 for ``int``).
        log: Search evenly by the logarithm.
        choices: What a choice is among.
        when: Other paths and the values under which this one takes part; all must hold.

    Raises:
        ConfigError: It has no value, or its bounds are no bounds.
    """

    path: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    step: float | None = None
    log: bool = False
    choices: tuple[Value, ...] = ()
    when: tuple[tuple[str, tuple[Value, ...]], ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "choice":
            if not self.choices or len(set(map(repr, self.choices))) < len(self.choices):
                raise ConfigError(f"{self.path}: choices must be one or more different values")
            return
        low, high = self.bounds
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ConfigError(
                f"{self.path}: low must not be above high, given {low:g} and {high:g}"
            )
        if self.log and low <= 0:
            raise ConfigError(f"{self.path}: log needs low above 0, given {low:g}")
        if self.step is not None and (self.step <= 0 or self.log):
            raise ConfigError(f"{self.path}: step must be above 0, and goes with no log")
        whole = [low, high, 1.0 if self.step is None else self.step]
        if self.kind == "int" and not all(float(number).is_integer() for number in whole):
            raise ConfigError(f"{self.path}: an int needs whole low, high and step")

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value of a number.

        Raises:
            ConfigError: One of them is missing, or this is a choice.
        """
        if self.low is None or self.high is None:
            raise ConfigError(f"{self.path}: a range needs low and high")
        return self.low, self.high

    def add_prefix(self, prefix: str) -> Parameter:
        """Put a prefix before the parameter's paths, as for a part of something larger."""
        when = tuple((f"{prefix}.{path}", allowed) for path, allowed in self.when)
        return replace(self, path=f"{prefix}.{self.path}", when=when)

    def add_condition(self, path: str, *allowed: Value) -> Parameter:
        """Let the parameter take part only under these values of another parameter."""
        return replace(self, when=(*self.when, (path, allowed)))

    def is_active(self, params: Params) -> bool:
        """Whether it takes part beside these values."""
        return all(path in params and params[path] in allowed for path, allowed in self.when)

    def contains(self, value: Value) -> bool:
        """Whether a value lies in the space, on its steps."""
        if self.kind == "choice":
            return any(value == c and type(value) is type(c) for c in self.choices)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        low, high = self.bounds
        step = 1.0 if self.kind == "int" and self.step is None else self.step
        steps = 0.0 if step is None else (value - low) / step
        return low <= value <= high and abs(steps - round(steps)) < 1e-9

    def round_value(self, value: Value) -> Value:
        """A real number without steps, with few significant digits; others as is."""
        if self.kind != "float" or self.step is not None or not isinstance(value, float):
            return value
        low, high = self.bounds
        return min(max(float(f"{value:.{DIGITS}g}"), low), high)

    def unit_position(self, value: Value) -> float:
        """The value's place in [0, 1]: by the logarithm under ``log``, choices evenly spread.

        A value outside the range has its place outside; one that is no number or no choice, NaN.
        """
        if self.kind == "choice":
            places = [i for i, option in enumerate(self.choices) if option == value]
            return places[0] / max(len(self.choices) - 1, 1) if places else math.nan
        if isinstance(value, str) or value is None or (self.log and value <= 0):
            return math.nan
        low, high, at = *self.bounds, float(value)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return (at - low) / (high - low) if high > low else 0.0

    def value_at(self, position: float) -> Value:
        """The value at a position in [0, 1]; whole numbers and choices have equal shares of it."""
        if self.kind == "choice":
            return self.choices[min(int(position * len(self.choices)), len(self.choices) - 1)]
        low, high = self.bounds
        step = self.step or (1.0 if self.kind == "int" else None)
        if self.log:  # each whole number gets its own stretch of the logarithm
            around = 0.5 if self.kind == "int" else 0.0
            start, end = math.log(low - around), math.log(high + around)
            value = math.exp(start + position * (end - start))
            return min(max(round(value), int(low)), int(high)) if around else value
        if step is None:
            return low + position * (high - low)
        steps = math.floor((high - low) / step + 1e-9)
        value = low + step * min(int(position * (steps + 1)), steps)
        return int(value) if self.kind == "int" else value


def real(
    path: str, low: float, high: float, *, step: float | None = None, log: bool = False
) -> Parameter:
    """A real number in [low, high]."""
    return Parameter(path, "float", low, high, step, log)


def integer(
    path: str, low: int, high: int, *, step: int | None = None, log: bool = False
) -> Parameter:
    """A whole number in [low, high]."""
    return Parameter(path, "int", low, high, step, log)


def choice(path: str, *choices: Value) -> Parameter:
    """One of some values."""
    return Parameter(path, "choice", choices=choices)


def table(path: str, entries: int, greatest: float, deepest: int) -> tuple[Parameter, ...]:
    """The parameters of a table from rank limits to values.

    Args:
        path: Of the table.
        entries: How many limits it has.
        greatest: Values are searched in [0, greatest].
        deepest: Ranks that one entry may span.
    """
    parameters: list[Parameter] = []
    for i in range(1, entries + 1):
        parameters.append(real(f"{path}.{i}.value", 0.0, greatest))
        parameters.append(integer(f"{path}.{i}.ranks", 1, deepest))
    return tuple(parameters)

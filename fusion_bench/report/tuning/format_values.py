"""How tuned values and gains are written."""

from __future__ import annotations

from collections.abc import Mapping

from fusion_bench.config.parameters import DIGITS
from fusion_bench.report.tuning_records.trials import Gain, ParameterInfo, Value
from fusion_bench.util.formatting import format_difference, format_p_value

#: So many choices are listed in a table; of more only the number.
MAX_CHOICES = 4


def format_value(value: Value) -> str:
    """A tuned number or choice; ``-`` where there is none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def format_values(values: Mapping[str, Value]) -> str:
    """``k 12, weights.dense 0.7``: values of several parameters in one line."""
    pairs = [f"{path} {format_value(value)}" for path, value in values.items()]
    return ", ".join(pairs) or "nothing"


def format_choices(parameter: ParameterInfo) -> str:
    """``none, linear``: all choices."""
    return ", ".join(format_value(choice) for choice in parameter.choices)


def format_range(parameter: ParameterInfo) -> str:
    """``1 to 1000 log``, or the choices, or how many there are."""
    if parameter.kind == "choice":
        count = len(parameter.choices)
        return f"{count} choices" if count > MAX_CHOICES else format_choices(parameter)
    scale = " log" if parameter.log else ""
    return f"{format_value(parameter.low)} to {format_value(parameter.high)}{scale}"


def format_gain(gain: Gain, alpha: float) -> str:
    """``+0.0300 [+0.0100, +0.0500], p .012``."""
    difference = format_difference(gain.difference, gain.low, gain.high)
    return f"{difference}, p {format_p_value(gain.p, alpha=alpha)}"

"""How names, counts and numbers are written, everywhere.

Means have 4 decimals, differences a sign, p-values no leading zero. No number is rounded to 0, and
no p across the level it was tested at: more decimals are shown instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Stands beside every p that is not adjusted for the number of comparisons.
UNADJUSTED = "†"
#: A p above this is not 1 either.
NEARLY_ONE = 0.9995
#: So many names are listed before "and n more".
MAX_NAMES = 3
#: Beyond this many decimals a number is float noise.
MOST_DECIMALS = 12


def is_encodable(value: str) -> bool:
    """Whether a string can be written to a file: an escape may leave half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def escape_control_chars(text: str) -> str:
    r"""A name as it is, but for control characters, which appear as ``\n`` or ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def pluralize(count: int, noun: str) -> str:
    """A number with its noun: ``1 query``, ``1,234 queries``, ``0 lists``."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun}"


def list_names(names: Sequence[str]) -> str:
    """The first few names, and how many more: ``a, b, c and 2 more``."""
    rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES])}{rest}"


def is_known(value: float | None) -> bool:
    """Whether there is a number: None and NaN are none."""
    return value is not None and not math.isnan(value)


def format_number(value: float | None, *, signed: bool = False) -> str:
    """Four decimals, or as many as it takes to tell it from 0; ``n/a`` for no number."""
    if value is None or math.isnan(value):
        return "n/a"
    for decimals in range(4, MOST_DECIMALS + 1):
        text = f"{value:{'+' if signed else ''}.{decimals}f}"
        if float(text) != 0:
            return text
    return "0.0000"


def format_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with four significant digits, or as many as it takes to tell them apart."""
    pairs = ((f"{first:.{digits}g}", f"{second:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in pairs if pair[0] != pair[1]), (f"{first:.4g}", f"{second:.4g}"))


def format_interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """``[low, high]``, or ``n/a``."""
    if not (is_known(low) and is_known(high)):
        return "n/a"
    return f"[{format_number(low, signed=signed)}, {format_number(high, signed=signed)}]"


def format_difference(mean: float | None, low: float | None, high: float | None) -> str:
    """A signed difference with its interval: ``+0.0100 [+0.0020, +0.0180]``."""
    return f"{format_number(mean, signed=True)} {format_interval(low, high, signed=True)}"


def format_change(
    difference: float | None, baseline: float | None, *, wins: int, losses: int, queries: int
) -> str:
    """A difference for people: ``+17.8 %: 25 queries better, 8 worse of 60``.

    Without the percentage where the baseline's mean is not above 0.
    """
    counts = f"{pluralize(wins, 'query')} better, {losses:,} worse of {queries:,}"
    if difference is None or baseline is None or not (is_known(difference) and baseline > 0):
        return counts
    return f"{100 * difference / baseline:+.1f} %: {counts}"


def format_coverage(alpha: float) -> str:
    """The coverage of an interval at level ``alpha``: ``95 %``."""
    return f"{100 - 100 * alpha:.6g} %"


def format_p_value(p: float | None, *, alpha: float, adjusted: bool = True) -> str:
    """``<.001`` or ``.012``, on the same side of ``alpha`` as the exact value; † = unadjusted."""
    mark = "" if adjusted else UNADJUSTED
    if p is None or math.isnan(p):
        return "n/a"
    if p < 0.001 <= alpha:
        return f"<.001{mark}"
    if p >= NEARLY_ONE:
        return f"{'1' if p == 1 else '>.999'}{mark}"
    if p <= 0:  # no test gives that, but a report may say it
        return f"0{mark}"
    decimals = 3
    while not float(text := f"{p:.{decimals}f}") or (float(text) < alpha) != (p < alpha):
        decimals += 1
    return f"{text.removeprefix('0')}{mark}"


def format_percent(value: float | None) -> str:
    """A percentage with one decimal; never 0 for a little more than that."""
    if value is None or math.isnan(value):
        return "n/a"
    return "<0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"


def format_rounded(value: float | None) -> str:
    """No decimals, thousands set apart."""
    return "n/a" if value is None or math.isnan(value) else f"{value:,.0f}"


def quote_text(name: str, text: str) -> str:
    """A name, and in quotation marks the text that people know it by, if there is one."""
    return f"{name} “{text}”" if text else name

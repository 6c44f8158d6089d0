"""How names, counts, numbers, tables are written, everywhere.

Means have 4 decimals, differences a sign, p-values no leading zero. No number is rounded to 0, and
no p across the level it was tested at: more decimals are shown instead.

A number is ``[+-]digits[.digits][e[+-]digits]``; the digits before or behind the point may be
missing. Python's other spellings are none: ``1_000``, ``１２``, ``0x10``, ``nan``, blanks around.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import pandas as pd


#: Stands behind every p that is not adjusted for the number of comparisons.
UNADJUSTED = " (unadjusted)"
#: A p above this is not 1 either.
NEARLY_ONE = 0.9995
#: So many names are listed before "and n more".
MAX_NAMES = 3
#: Beyond this many decimals a number is float noise.
MOST_DECIMALS = 12
#: Longest error; a longer one quotes something that is no id.
MAX_ERROR_LENGTH = 2000
#: Columns of output that is no terminal.
PIPE_WIDTH = 120


def is_encodable(value: str) -> bool:
    """Whether a string can be written to a file: an escape may leave half a surrogate pair."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def escape_control_chars(text: str) -> str:
    r"""A name as it is, but for control characters, which appear as ``\n`` or ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten_error(text: str) -> str:
    """An error of at most 2,000 characters: of a longer one, the beginning and the end."""
    if len(text) <= MAX_ERROR_LENGTH:
        return text
    return f"{text[: MAX_ERROR_LENGTH // 2]} … {text[-MAX_ERROR_LENGTH // 2 :]}"


def wrap_line(line: str, width: int = PIPE_WIDTH) -> list[str]:
    r"""The line in parts of at most ``width`` characters; those that follow are indented.

    A command breaks before its options only, and goes on after ``\``. Longer words stay whole.
    """
    is_command = line.strip().removeprefix("Next: ").startswith("fusion-bench ")
    gap, end = (" (?=--)", " \\") if is_command else (" ", "")
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    first, *others = re.split(gap, line)
    lines = [first]
    for part in others:
        if len(f"{lines[-1]} {part}{end}") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(f"{indent}{part}")
    return lines


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


#: In place of [-1, +1].
NO_INTERVAL = "[too few differing queries for an interval]"


def format_interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """``[low, high]``; ``n/a``; of the whole range that a difference has, that it says nothing."""
    if not (is_known(low) and is_known(high)):
        return "n/a"
    if signed and low is not None and high is not None and low <= -1 and high >= 1:
        return NO_INTERVAL
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
    """``<.001`` or ``.012``, on the same side of ``alpha`` as the exact value, or unadjusted."""
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


def format_loss_share(name: str, share: float | None) -> str:
    """`` NAME loses in 2.1 % of the draws.`` of a change; empty where nothing was drawn."""
    if share is None or math.isnan(share):
        return ""
    return f" {name} loses in {format_percent(share)} of the draws."


def format_rounded(value: float | None) -> str:
    """No decimals, thousands set apart."""
    return "n/a" if value is None or math.isnan(value) else f"{value:,.0f}"


def quote_text(name: str, text: str) -> str:
    """A name, and in quotation marks the text that people know it by, if there is one."""
    return f"{name} “{text}”" if text else name


DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
#: A whole number, also as pandas and spreadsheets write it where a column has gaps: ``2.0``.
WHOLE: Final = re.compile(r"([+-]?\d+)(\.0*)?", re.ASCII)
#: Greatest whole number that a column of 64 bits holds; the least is its negative.
GREATEST: Final = 2**63 - 1
#: Digits of a whole number that are read at all: Python takes long over thousands of them.
MOST_DIGITS: Final = 400


def is_decimal(text: str) -> bool:
    """Whether a text is a number."""
    return DECIMAL.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of at most 64 bits, also such as 2.0."""
    try:
        parse_whole(text)
    except (ValueError, OverflowError):
        return False
    return True


def parse_whole(text: str) -> int:
    """The whole number that a text is.

    Raises:
        ValueError: It is none.
        OverflowError: It does not fit into 64 bits.
    """
    match = WHOLE.fullmatch(text)
    if match is None:
        raise ValueError("not a whole number")
    if len(match[1]) > MOST_DIGITS or abs(number := int(match[1])) > GREATEST:
        raise OverflowError(f"beyond ±{GREATEST}")
    return number


#: Name → values of one column; all columns are equally long.
Columns: TypeAlias = Mapping[str, Sequence[Any]]

#: Rows that a notebook shows.
SHOWN_ROWS = 10


class TableView:
    """Short texts and data frames of whatever can name its rows; a mixin."""

    @abstractmethod
    def _summary(self) -> str:
        """What it is, in at most three short lines."""

    @abstractmethod
    def _table_columns(self, limit: int | None = None) -> Columns:
        """Its rows by columns; only the first ``limit``."""

    def __repr__(self) -> str:
        return "\n".join(map(escape_control_chars, self._summary().splitlines()))

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary and the first rows."""
        return format_html(repr(self), self._table_columns(SHOWN_ROWS + 1))

    def to_latex(self) -> str:
        """Its rows as a table of LaTeX (booktabs), special characters escaped."""
        return make_frame(self._table_columns()).to_latex(
            index=False, escape=True, float_format="%.4f", na_rep=""
        )

    def to_pandas(self) -> pd.DataFrame:
        """Its rows as a data frame."""
        return make_frame(self._table_columns())


def list_columns(record: type, rows: Sequence[Any]) -> Columns:
    """The fields of records as columns, one row a record.

    Args:
        record: Their dataclass.
        rows: The records.
    """
    names = (field.name for field in fields(record))
    return {name: [getattr(row, name) for row in rows] for name in names}


def make_frame(columns: Columns) -> pd.DataFrame:
    """The columns as a data frame."""
    import pandas as pd  # takes longer to import than most evaluations take

    kept: dict[str, Any] = {}
    for name, given in columns.items():
        values = list(given)
        has_gaps = set(map(type, values)) == {int, type(None)}  # they stay whole numbers
        kept[name] = pd.array(values, dtype="Int64") if has_gaps else values
    return pd.DataFrame(kept)


def format_html(summary: str, columns: Columns) -> str:
    """A summary above a table, every text escaped; rows beyond the first few become an ellipsis."""
    from html import escape  # late: its table of entities is large

    rows = list(zip(*columns.values(), strict=True))
    lines = [f"<p>{'<br>'.join(escape(line) for line in summary.splitlines())}</p>"]
    if rows:
        head = "".join(f"<th>{escape(escape_control_chars(name))}</th>" for name in columns)
        lines += ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
        lines += [_format_row(row) for row in rows[:SHOWN_ROWS]]
        if len(rows) > SHOWN_ROWS:
            lines.append(_format_row(["…"] * len(columns)))
        lines += ["</tbody>", "</table>"]
    return "\n".join(lines)


def _format_row(row: Sequence[Any]) -> str:
    from html import escape  # late, as above

    return f"<tr>{''.join(f'<td>{escape(_format_cell(cell))}</td>' for cell in row)}</tr>"


def _format_cell(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4f}" if isinstance(cell, float) else escape_control_chars(str(cell))


#: Called with what is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Report no progress."""


_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("whether to go on", default=None)


@contextmanager
def checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Have long computations of this context ask whether to go on.

    Args:
        check: Called between two steps; raises where nobody waits for the result any more.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_wanted() -> None:
    """What a long computation calls between two steps; raises where it shall end."""
    check = _CHECK.get()
    if check is not None:
        check()

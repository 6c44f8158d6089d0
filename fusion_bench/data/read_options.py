"""How the rows of a file become ranks: values parsed, rows dropped, before any fusion.

Text is read as :mod:`fusion_bench.util.formatting` says. Numbers of Python, numpy and decimal
are read as they are. Truth values, bytes and everything else are errors that name the row.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from fusion_bench.data.grouped_rows import query_of_rows
from fusion_bench.data.ordering import ChunkScore, FloatArray, IntArray
from fusion_bench.errors import DataError
from fusion_bench.util.formatting import is_decimal, is_whole, parse_whole

#: Every character of a number. Of a text of these alone Python's ``float`` accepts exactly what
#: ``is_decimal`` does.
NUMBER_CHARACTERS: Final = frozenset("0123456789+-.eE")
#: Greatest grade or rank. Up to here a float holds every whole number, so that files of text, JSON
#: and Parquet say the same.
GREATEST: Final = 2**53
#: Numbers of Python, numpy and decimal.
NUMBERS: Final = (int, float, Decimal, np.integer, np.floating)
#: Characters of a value that a message shows.
MOST_SHOWN: Final = 60
#: Values of a scale that a message lists.
MOST_LABELS: Final = 12
#: Which of a list's scores are better.
Order: TypeAlias = Literal["higher", "lower"]
#: Which of several grades of one document counts.
GradeRule: TypeAlias = Literal["error", "min", "max", "mean", "first"]


def parse_scores(scores: Any) -> FloatArray:  # noqa: ANN401 - anything may stand in a file
    """Shape (N,): finite numbers.

    Raises:
        DataError: One is not; names the row.
    """
    values = _read_column(scores)
    if values is None:
        values = np.array([_read_score(value, row) for row, value in enumerate(scores)])
    is_finite = np.isfinite(values)
    if not is_finite.all():
        raise _not_finite(values.item(row := int(np.argmin(is_finite))), row)
    return values


def parse_whole_numbers(values: Any, what: str) -> IntArray:  # noqa: ANN401 - as above
    """Shape (N,): whole numbers, also such as 2.0, from -2^53 to 2^53.

    Args:
        values: Grades or ranks.
        what: What they are, for messages.

    Raises:
        DataError: One is not; names the row.
    """
    is_array = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
    if not is_array or ((values > GREATEST) | (values < -GREATEST)).any():
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        return np.array(
            [_read_whole(value, what, row) for row, value in enumerate(listed)], dtype=np.int64
        )
    whole: IntArray = values.astype(np.int64, copy=False)
    return whole


def _read_column(values: Any) -> FloatArray | None:  # noqa: ANN401 - as above
    """Numbers, or texts of numbers, all at once; None where they have to be read singly."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return values.astype(np.float64, copy=False)
    kinds = set(map(type, values))
    if not kinds <= {str, int, float}:
        return None
    texts = (value for value in values if isinstance(value, str)) if str in kinds else ()
    if not NUMBER_CHARACTERS.issuperset("".join(texts)):
        return None
    try:
        return np.fromiter(map(float, values), np.float64, len(values))
    except (ValueError, OverflowError):
        return None


def _read_score(value: object, row: int) -> float:
    """A finite number.

    Raises:
        DataError: It is none.
    """
    try:
        text_or_number = value if isinstance(value, str) else _require_number(value)
        number = float(text_or_number)
    except OverflowError:  # more digits than a float holds
        raise _not_finite(value, row) from None
    except ValueError:
        number = None
    if number is not None and not math.isfinite(number):
        raise _not_finite(number, row)
    if number is None or (isinstance(value, str) and not is_decimal(value)):
        raise DataError(f"score {_shorten(value)} is not a number{_hint(value)}", row=row)
    return number


def _read_whole(value: object, what: str, row: int) -> int:
    """A whole number.

    Raises:
        DataError: It is none, or too large.
    """
    number: int | None = None
    try:
        given = parse_whole(value) if isinstance(value, str) else _require_number(value)
        number = int(given) if given == int(given) else None
    except OverflowError:
        if not isinstance(value, float):  # which is infinite
            raise _too_large(value, what, row) from None
    except ValueError:
        pass
    if number is None:
        raise DataError(f"{what} {_shorten(value)} is not a whole number{_hint(value)}", row=row)
    if abs(number) > GREATEST:
        raise _too_large(value, what, row)
    return number


def _require_number(value: object) -> Any:  # noqa: ANN401 - a number of any package
    """The value, which is a number.

    Raises:
        ValueError: It is not, or is true or false.
    """
    if isinstance(value, NUMBERS) and not isinstance(value, bool):
        return value
    raise ValueError("not a number")


def _not_finite(value: object, row: int) -> DataError:
    return DataError(f"score {_shorten(value)} is not a finite number", row=row)


def _too_large(value: object, what: str, row: int) -> DataError:
    return DataError(f"{what} {_shorten(value)} is beyond ±2^53 (±{GREATEST})", row=row)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _hint(value: object) -> str:
    """What to do about a text that others may take for a number."""
    if not isinstance(value, str) or is_decimal(value):
        return ""
    if value.count(",") == 1 and "." not in value:
        return f": write {value.replace(',', '.')!r}"
    try:
        float(value)
    except ValueError:
        return ""
    return ": write plain digits, such as 1000 or -1.5e3"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a run's rows become ranks: the options that can change a ranking before any fusion.

    Attributes:
        rank_from: ``score`` = position after sorting by score; ``column`` = the file's own ranks.
        source_ties: Who stands first among equal scores: ``trec`` = greater document id by bytes,
            ``file`` = the earlier row.
        on_duplicate: A document listed twice for a query is an error, or keeps its best rank.
        drop_zero_scores: Drop rows whose score is exactly 0 (padding of BM25 implementations).
        order: ``lower`` = the values are distances, read with the opposite sign; None = what the
            file's layout implies, else ``higher``.
        drop_own_id: Drop the document whose id is the query's, before ranks are counted.
        ids: Rule that changes the document ids, see :mod:`fusion_bench.data.id_rules`; None = none.
        collapse: A document listed twice for a query is one, with this score of its rows; None =
            ``on_duplicate`` decides.
        collapse_k: Flattens the difference between neighboring ranks for ``rrf``; None = 60.
    """

    rank_from: Literal["score", "column"] = "score"
    source_ties: Literal["trec", "file"] = "trec"
    on_duplicate: Literal["error", "best_rank"] = "error"
    drop_zero_scores: bool = False
    order: Order | None = None
    drop_own_id: bool = False
    ids: str | None = None
    collapse: ChunkScore | None = None
    collapse_k: float | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The options as plain values; the ``LATER`` ones only if they are set."""
        given = asdict(self)
        return {name: given[name] for name in given if name not in LATER or given[name]}


#: Options that records made before there were any of them lack.
LATER: Final = frozenset({"order", "drop_own_id", "ids", "collapse", "collapse_k"})


@dataclass(frozen=True, slots=True)
class GradeOptions:
    """How the rows of a file of judgments become grades.

    Attributes:
        on_duplicate: Which grade counts if a document is judged differently for one query; the same
            grade twice counts once.
        grades: Value in the file → grade; empty = the values are grades.
        ids: Rule that changes the document ids; None = none.
    """

    on_duplicate: GradeRule = "error"
    grades: Mapping[str, int] = field(default_factory=dict)
    ids: str | None = None


def parse_grades(values: Any, scale: Mapping[str, int]) -> IntArray:  # noqa: ANN401 - as above
    """Shape (N,): the grades of what a file holds.

    Args:
        values: Whole numbers, or what the scale names.
        scale: Value in the file → grade; empty = the values are grades.

    Raises:
        DataError: A value is no grade; lists the values of the file, and how to give each a grade.
    """
    if scale:
        names = [label_value(value) for value in values]
        missing = next((row for row, name in enumerate(names) if name not in scale), None)
        if missing is not None:
            raise DataError(
                f"grade {names[missing]!r} is not in 'grades' ({_list_labels(scale)}; in the file: "
                f"{_list_labels(names)}): add it",
                row=missing,
            )
        return np.array([scale[name] for name in names], dtype=np.int64)
    try:
        return parse_whole_numbers(values, "grade")
    except DataError as error:
        names = sorted({label_value(value) for value in values})
        is_scale = len(names) <= MOST_LABELS and "," not in "".join(names)
        if not is_scale or all(map(is_whole, names)):
            raise
        # Each value gets the place of a number, in order.
        is_numeric = all(map(is_decimal, names))
        ordered = sorted(names, key=float) if is_numeric else names
        grades = [f"{name}={place if is_numeric else 'N'}" for place, name in enumerate(ordered)]
        option = shlex.join(["--grades", ",".join(grades)])
        meaning = "" if is_numeric else ", with a whole number for each N"
        raise DataError(
            f"{error}: state its grade: {option}{meaning} ('grades' of 'qrels' in dataset.yaml)",
            row=error.row,
        ) from None


def label_value(value: object) -> str:
    """A value as the keys of a scale have it: ``1`` for 1.0 and ``'1.0'``."""
    text = str(value).strip()
    return f"{float(text):.15g}" if is_decimal(text) else text


def _list_labels(names: Iterable[str]) -> str:
    """The distinct names, the first of them."""
    distinct = list(dict.fromkeys(names))
    more = ", …" if len(distinct) > MOST_LABELS else ""
    return ", ".join(distinct[:MOST_LABELS]) + more


def order_by_value(values: IntArray, offsets: IntArray) -> IntArray:
    """The rows of each query by their values, a stable sort."""
    rises = np.ones(len(values) + 1, dtype=bool)
    np.less_equal(values[:-1], values[1:], out=rises[1:-1])
    rises[offsets] = True  # a query's first row has nothing above it
    return np.arange(len(values)) if rises.all() else np.lexsort((values, query_of_rows(offsets)))

"""What every file format is, the registry of them, the column names that they share."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.registry import Registry
from fusion_bench.config.yaml_files import format_flow_yaml
from fusion_bench.data.document_rows import (
    COLUMN_NAMES,
    ID_ROLES,
    VALUE_ROLES,
    check_rivals,
    is_distance,
    list_candidates,
)
from fusion_bench.data.grouped_rows import CategoricalIds, encode_ids
from fusion_bench.data.ordering import IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import parse_scores, parse_whole_numbers
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError, FusionBenchError, did_you_mean
from fusion_bench.io.raw_files import (
    NO_COLUMNS,
    ArrowStrings,
    ColumnNames,
    Kind,
    RawTable,
    drop_unjudged,
)


class TableReader(Protocol):
    """Reads one file; its errors name file and line."""

    def __call__(
        self, path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames
    ) -> RawTable:
        """The rows of a file.

        Args:
            path: The file.
            kind: What it holds.
            has_ranks: Whether to read its rank column, if it has one.
            columns: What a column holds → its name in this file; empty = the usual names.
        """


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        suffixes: What files of the format end with, small letters, ``.gz`` apart: ``(".trec",)``.
        read_table: Reads a file.
    """

    suffixes: tuple[str, ...]
    read_table: TableReader


class _FormatRegistry(Registry[Format]):
    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        if not isinstance(plugin, Format):
            raise ConfigError(f"{name!r} is no {self.kind}: make it a Format")


FORMATS = _FormatRegistry("file format", "fusion_bench.io.formats", "fusion_bench.formats")


Reader = TypeVar("Reader", bound=TableReader)


def register_format(name: str, *suffixes: str) -> Callable[[Reader], Reader]:
    """Decorator: register the reader of the files that end with these suffixes."""

    def register(read_table: Reader) -> Reader:
        FORMATS.add_plugin(name, Format(suffixes, read_table))
        return read_table

    return register


#: Words in a name that suggest what a column of another name holds.
SUGGESTIVE_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query", "search", "question", "topic", "keyword", "term", "qid"),
    "document": ("doc", "url", "product", "item", "page", "passage", "article", "sku", "pid"),
    "score": ("score", "sim", "relevance", "confidence", "point"),
    "grade": ("grade", "rating", "rel", "judg", "label", "score", "star", "point"),
    "rank": ("rank", "position"),
}
#: What libraries of tables call a column that has no name.
NAMELESS: Final = re.compile(r"(unnamed: \d+|__index_level_\d+__)?", re.IGNORECASE)
#: Words in a name whose column is never proposed as a score.
RISING_WORDS: Final = ("dist", "rank", "position")
#: Columns that lists have and judgments have not.
RANKED_NAMES: Final = frozenset({"_score", "rank", "similarity", "distance"})
#: Reads the file again, by these columns.
Attempt: TypeAlias = Callable[[ColumnNames], RawTable]
#: What to do with a file that no ``columns`` can read.
CONVERT: Final = "convert the file: 'fusion-bench formats' lists what is read"


def find_columns(
    names: Sequence[str],
    kind: Kind,
    where: str,
    columns: ColumnNames = NO_COLUMNS,
    *,
    known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES,
    required: Collection[str] = ID_ROLES,
    is_ordered: bool = False,
    allows_pairs: bool = False,
    attempt: Attempt | None = None,
) -> dict[str, str]:
    """The file's own name of each column that a kind needs, and of ``rank`` if it is there.

    Args:
        names: All names in the file.
        kind: What the file holds.
        where: Prefix of the message that says where they stand.
        columns: What a column holds → its name, where it has none of the usual names.
        known_names: The usual names.
        required: What must be there besides a score or a grade.
        is_ordered: The rows stand in the order of their ranks.
        allows_pairs: Judgments may have a query and a document alone: each grade is 1.
        attempt: Reads the file again by other columns: only what it can read is proposed.

    Returns:
        ``query``, ``document``, ``value`` and perhaps ``rank`` → the name in the file. A run
        without a ``value`` has its order from ``rank``: it has no other column, or ``columns``
        names the rank and no score. The values of a column that :func:`is_distance` accepts are
        better if they are smaller.

    Raises:
        DataError: A needed column is not there, or two have one name.
    """
    given_names = columns.values()
    names = [each for each in names if each in given_names or not NAMELESS.fullmatch(each.strip())]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{where}: two columns are named {repeated[0]!r}: keep one")
    value = VALUE_ROLES[kind]
    if kind == "run":
        distances = (name.strip().lower() for name in names if is_distance(name))
        known_names = {**known_names, value: (*known_names[value], *distances)}
    given = match_columns(names, (*required, value, "rank"), where, columns, known_names)
    missing = [role for role in (*required, value) if role not in given]
    has_only_ranks = "rank" in columns or set(names) <= {*given.values()}
    has_order = has_only_ranks and (is_ordered or "rank" in given)
    is_pair = allows_pairs and kind == "qrels" and has_only_ranks and "rank" not in given
    if missing and not (missing == [value] and (has_order if kind == "run" else is_pair)):
        allowed = "; ".join(f"{role}: {', '.join(known_names[role])}" for role in missing)
        if len(missing) == 1:
            allowed = ", ".join(known_names[missing[0]])
        present = ", ".join(names) or "nothing"
        if "grade" in missing and not RANKED_NAMES.isdisjoint(map(str.lower, names)):
            raise DataError(f"{where}: a ranked list, and judgments are needed (found: {present})")
        remedy = "add it"
        if not set(names) <= {*given.values()}:
            guesses = ({**columns, **guess} for guess in list_guesses(missing, given, names))
            remedy = f"rename it, or {propose_columns(guesses, attempt, kind)}"
        raise DataError(
            f"{where}: no column for the {' or the '.join(missing)} (found: {present}; allowed "
            f"names: {allowed}): {remedy}"
        )
    return {"value" if role == value else role: name for role, name in given.items()}


def complete_table(
    table: RawTable, kind: Kind, where: str, names: ColumnNames, notes: tuple[str, ...]
) -> RawTable:
    """Return a table with notes and the direction of its values.

    Judgments of a query and a document alone get grade 1, those with a blank grade are left out.

    Args:
        table: The rows.
        kind: What the file holds.
        where: Prefix of a message.
        names: What :func:`find_columns` returned.
        notes: As :class:`RawTable` has them.
    """
    if kind == "run":
        return replace(table, notes=notes, lower_is_better=is_distance(names.get("value", "")))
    if table.values is None:
        notes += ("The file has no grades, only pairs: each pair has grade 1.",)
        table = replace(table, values=[1] * len(table.lines))
    table = replace(table, notes=notes)
    return table if isinstance(table.values, np.ndarray) else drop_unjudged(table, where)


def match_columns(
    names: Sequence[str],
    roles: Sequence[str],
    where: str,
    columns: ColumnNames = NO_COLUMNS,
    known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES,
) -> dict[str, str]:
    """The name of each role's column that is there; arguments as for :func:`find_columns`.

    Raises:
        DataError: ``columns`` names one that is not there.
    """
    by_lower = {name.strip().lower(): name for name in reversed(names)}
    given = {}
    for role in [role for role in roles if role in columns]:
        name = columns[role]
        given[role] = name if name in names else by_lower.get(name.strip().lower(), "")
        if given[role] not in names:
            remedy = "" if "grade" in roles else f"; of one list: --run-columns LIST:{role}=NAME"
            raise DataError(
                f"{where}: columns.{role}: no column {name!r}{did_you_mean(name, names)} "
                f"(found: {', '.join(names)}{remedy})"
            )
    for role in roles:
        free = (name for name in names if name not in given.values())
        known = () if role in given else list_candidates(free, role, known_names)
        if known:
            given[role] = known[0]
    return {role: given[role] for role in roles if role in given}


def settle_rivals(
    names: Sequence[str],
    given: ColumnNames,
    kind: Kind,
    where: str,
    columns: ColumnNames,
    read: Callable[[str], Any],
    known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES,
) -> tuple[str, ...]:
    """Compare each chosen column with the others that are known for the same role.

    Args:
        names: All names in the file.
        given: What :func:`find_columns` returns for them.
        kind: What the file holds.
        where: Prefix of a message.
        columns: What the user named: these columns have no rivals.
        read: Returns the values of a column, a list.
        known_names: The usual names.

    Returns:
        Notes for :attr:`RawTable.notes`.

    Raises:
        DataError: Two columns of one role have different values.
    """
    notes = tuple[str, ...]()
    option = "--run-columns" if kind == "run" else "--qrels-columns"
    for key, name in given.items():
        role = VALUE_ROLES[kind] if key == "value" else key
        others = [other for other in names if other == name or other not in given.values()]
        rivals = list_candidates(others, role, known_names)
        if role not in columns and name in rivals:
            remedy = f"delete one, or choose: columns: {format_columns({role: name})} ({option} "
            remedy += f"{shlex.quote(f'{role}={name}')})"
            try:
                notes += check_rivals(role, rivals, read, remedy)
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
    return notes


#: Most ways in which a file is read again before an error says which one works.
MOST_ATTEMPTS: Final = 8


def propose_columns(
    guesses: Iterable[ColumnNames], attempt: Attempt | None, kind: Kind, otherwise: str = CONVERT
) -> str:
    """Return the end of an error message: the first ``columns`` that were tried and read the file.

    A reader that misses a column calls this with its guesses and with a function that reads the
    same file again with other ``columns``, such as
    ``lambda columns: read_table(path, kind, has_ranks=has_ranks, columns=columns)``. Nothing is
    proposed that was not tried. Each guess has to name a role that the user's ``columns`` lack, so
    that an attempt that fails and guesses again comes to an end.

    Args:
        guesses: All columns to read the file with, those that the user named among them; the
            likeliest first.
        attempt: Reads the file; may raise any error of this package.
        kind: What the file holds.
        otherwise: What to say if no guess gives ids and scores (or grades).

    Returns:
        ``write columns: {…} beside the file's path in dataset.yaml (without a dataset.yaml:
        --run-columns …)``, or ``otherwise``.
    """
    tried = islice(guesses, MOST_ATTEMPTS) if attempt is not None else ()
    works = (each for each in tried if attempt and is_readable(partial(attempt, each), kind))
    guess = next(works, None)
    if guess is None:
        return otherwise
    option = "--run-columns" if kind == "run" else "--qrels-columns"
    words = [f"{option} {shlex.quote(f'{role}={name}')}" for role, name in guess.items()]
    words += ["(NAME:KEY=COLUMN for one list)"] if kind == "run" else []
    return (
        f"write columns: {format_columns(guess)} beside the file's path in dataset.yaml (without a "
        f"dataset.yaml: {' '.join(words)})"
    )


def is_readable(read: Callable[[], RawTable], kind: Kind) -> bool:
    """Whether reading a file gives ids and scores, or grades.

    Scores that rise along every list of the file are none: they may be ranks or distances. Nor are
    ranks or distances that fall.
    """
    try:
        table = read()
        if isinstance(table.documents, ArrowStrings):
            from fusion_bench.io.arrow_text import encode_documents

            (table,) = encode_documents([table])
        documents = cast("Sequence[str] | CategoricalIds", table.documents)
        if kind == "qrels":
            Qrels.from_rows(table.queries, documents, [] if table.values is None else table.values)
            return True
        if table.values is None:
            numbers = -parse_whole_numbers(table.ranks, "rank").astype(np.float64)
        else:
            numbers = parse_scores(table.values) * (-1 if table.lower_is_better else 1)
        Run.from_rows("", table.queries, documents, numbers)
    except FusionBenchError:
        return False
    steps = find_steps(encode_ids(table.queries).codes, numbers)
    return not len(steps) or bool((steps < 0).any()) or not steps.any()


def find_steps(queries: IntArray, numbers: NDArray[np.number]) -> NDArray[np.number]:
    """Return the differences between each number and the next one of the same query.

    Args:
        queries: Shape (n,): codes.
        numbers: Shape (n,), in the order of the file.
    """
    order = np.argsort(queries, kind="stable")
    steps: NDArray[np.number] = np.diff(numbers[order])[np.diff(queries[order]) == 0]
    return steps


def list_guesses(
    missing: Sequence[str], given: ColumnNames, names: Sequence[str]
) -> Iterator[dict[str, str]]:
    """Yield the columns that may hold what is missing, the likeliest first.

    Args:
        missing: What no column of a known name holds.
        given: What the others hold → their names.
        names: All names in the file.
    """
    free = [name for name in names if name not in given.values()]
    roles = [missing]
    if "score" in missing:  # ranks do as well
        roles.append(["rank" if role == "score" else role for role in missing])
    for wanted in roles:
        near = {}
        for role in [each for each in wanted if each not in given]:
            words = SUGGESTIVE_WORDS[role]  # the most telling word first
            likely = dict.fromkeys(name for word in words for name in free if word in name.lower())
            near[role] = [name for name in likely if role != "score" or not _may_rise(name)]
        taken = {name for names in near.values() for name in names[:1]}
        rest = [name for name in free if name not in taken]
        empty = [role for role, found in near.items() if not found]
        if len(empty) == len(rest) == 1 and empty != ["rank"] and not _may_rise(rest[0]):
            near[empty[0]] = rest
        for guess in product(*near.values()):
            if len(set(guess)) == len(guess):
                yield dict(zip(near, guess, strict=True)) | {
                    role: given[role] for role in wanted if role in given
                }


def _may_rise(name: str) -> bool:
    """Whether a name is one of ranks or distances, of which a smaller one is better."""
    return any(word in name.lower() for word in RISING_WORDS)


def format_columns(columns: ColumnNames) -> str:
    """A ``columns`` map as YAML of one line."""
    return format_flow_yaml(dict(columns))

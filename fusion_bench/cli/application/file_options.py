"""Options that name files or their columns: ``bm25=a.jsonl``, ``query=search term``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, get_args

import typer

from fusion_bench.config.options import Count, File, Names, Option, Options
from fusion_bench.data.document_rows import QRELS_ROLES, RUN_ROLES
from fusion_bench.data.read_options import GradeRule
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.util.formatting import is_whole, parse_whole

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter import RerankFile
    from fusion_bench.io.dataset_config import FileSettings
    from fusion_bench.io.raw_files import FileLayout

#: Names the judgments where a list may be named.
QRELS: Final = "qrels"

QrelsColumns: TypeAlias = Annotated[
    Sequence[str],
    Option(
        metavar="ROLE=NAME",
        help=f"The judgments' column of {', '.join(QRELS_ROLES)}, if it has an unusual name; "
        "repeatable.",
    ),
]
RunColumns: TypeAlias = Annotated[
    Sequence[str],
    Option(
        metavar="[LIST:]ROLE=NAME",
        help=f"The lists' column of {', '.join(RUN_ROLES)}, if it has an unusual name, for all "
        "lists or one; repeatable.",
    ),
]


class ReadingOptions(Options):
    """Options that say how to read lists without a YAML file; each list has a name.

    Attributes:
        order: Read the scores of a list as distances; repeatable.
        ids: Change the document ids of a list, or of the judgments as 'qrels', by a rule;
            repeatable. Rules: decimal (drop a final .0), zeros (drop leading zeros), lowercase,
            nfc, slash (drop the last one), drop_prefix:TEXT, drop_suffix:TEXT.
        requests: File of the queries that the answers of all lists, or of one list, are to, in
            their order; repeatable.
        encoding: Encoding of text files, such as cp1252, or of one file; repeatable. Default:
            UTF-8.
        drop_own_id: Leave out documents with the id of their query; repeatable.
    """

    run_columns: RunColumns = ()
    order: Annotated[Sequence[str], Option(metavar="NAME=lower")] = ()
    ids: Annotated[Sequence[str], Option(metavar="NAME=RULE")] = ()
    encoding: Annotated[Sequence[str], Option(metavar="[NAME=]ENCODING")] = ()
    requests: Annotated[Sequence[str], Option(metavar="[NAME=]FILE")] = ()
    drop_own_id: Names = ()

    def list_values(self, lists: Collection[str]) -> dict[str, Any]:
        """Key of a file in ``dataset.yaml`` → file → value; raises as :meth:`state_files`."""
        shared = {"encoding": (*lists, QRELS), "requests": tuple(lists)}
        return {
            "columns": parse_run_columns(self.run_columns, lists),
            "drop_own_id": dict.fromkeys(self.drop_own_id, True),
            **{
                key: _parse_by_file(getattr(self, key), f"--{key}", shared.get(key, ()))
                for key in ("order", "ids", "encoding", "requests")
            },
        }

    def state_files(self, lists: Collection[str]) -> FileSettings:
        """Return the settings that the options state for these lists and the judgments.

        Raises:
            ConfigError: An option breaks a rule.
            typer.BadParameter: A value has no name, or a name has two values.
        """
        from fusion_bench.io.dataset_config import FileSettings

        return FileSettings.from_options(self.list_values(lists), lists)


class FileOptions(ReadingOptions):
    """Options that say how to read lists and judgments without a YAML file.

    Attributes:
        grades: Grade of each value that is no whole number, such as Irrelevant=0,Exact=3;
            repeatable.
        on_duplicate: Which grade counts if one document has several for one query.
    """

    qrels_columns: QrelsColumns = ()
    grades: Annotated[Sequence[str], Option(metavar="VALUE=GRADE,…")] = ()
    on_duplicate: GradeRule = "error"

    def list_values(self, lists: Collection[str]) -> dict[str, Any]:
        """Key of a file in ``dataset.yaml`` → file → value; raises as :meth:`state_files`."""
        stated = super().list_values(lists)
        if self.qrels_columns:
            columns = _parse_columns(self.qrels_columns, QRELS_ROLES, "--qrels-columns")
            stated["columns"][QRELS] = columns
        if self.grades:
            form = "VALUE=GRADE with a whole number, such as Exact=3"
            grades = _parse_pairs(
                ",".join(self.grades).split(","), "--grades", form, is_valid=is_whole
            )
            stated["grades"] = {value: parse_whole(grade) for value, grade in grades.items()}
        if self.on_duplicate != "error":
            stated["on_duplicate"] = self.on_duplicate
        return stated


class ColumnOptions(FileOptions):
    """Options that say how to read and measure files without a YAML file."""

    measure: Annotated[
        Names,
        Option(help=f"Measure, the primary one first. Default: {', '.join(DEFAULT_MEASURES)}."),
    ] = ()


#: Options of how files are read: their fields.
READING: Final = ("run_columns", "order", "ids", "encoding", "requests", "drop_own_id")
FILES: Final = (*READING, "qrels_columns", "grades", "on_duplicate")


class RoleOptions(Options):
    """The roles of lists that no YAML describes.

    Attributes:
        role: Role of a list, such as dense=question for the one that was asked with the user's own
            question; several with commas; repeatable.
    """

    role: Annotated[Sequence[str], Option(metavar="NAME=ROLE")] = ()

    def parse_roles(self) -> dict[str, list[str]]:
        """Return the roles by the name of a list.

        Raises:
            typer.BadParameter: A name or a role is missing, or a name has two values.
        """
        pairs = _parse_pairs(self.role, "--role", "NAME=ROLE")
        return {name: roles.split(",") for name, roles in pairs.items()}


class ListOptions(RoleOptions):
    """Options that name the files beside a user's own ranked lists.

    Attributes:
        qrels: Judgments file.
        queries: What is known of the queries, as JSON Lines: id, text, type, group, split.
        rerank: A reranker's scores; repeatable. Without SPACE (unit, logit, log_prob, unbounded,
            order) the values decide what they mean.
        binary_relevance: Grade from which binary measures count.
    """

    qrels: File | None = None
    queries: File | None = None
    rerank: Annotated[Sequence[str], Option(metavar="NAME[:SPACE]=FILE")] = ()
    binary_relevance: Count = 1


def parse_qrels_columns(values: Sequence[str]) -> FileLayout:
    """The layout of judgments whose columns have other names than the usual ones.

    Args:
        values: ``ROLE=NAME``, such as ``query=search term``.

    Raises:
        typer.BadParameter: A role or a name is missing, or a role appears twice.
        UnknownNameError: No such role.
    """
    from fusion_bench.io.raw_files import FileLayout

    return FileLayout(columns=_parse_columns(values, QRELS_ROLES, "--qrels-columns"))


def parse_run_columns(values: Sequence[str], lists: Collection[str]) -> dict[str, dict[str, str]]:
    """List → what a column of its file holds → its name.

    Args:
        values: ``ROLE=NAME``, or ``LIST:ROLE=NAME`` for the file of one list alone.
        lists: The names of the lists.

    Raises:
        typer.BadParameter: As for :func:`parse_qrels_columns`; so an UnknownNameError.
        UnknownNameError: No such list.
    """
    option, by_list = "--run-columns", dict[str, list[str]]()
    for value in values:
        role, equals, column = value.partition("=")
        name, _, role = role.rpartition(":")
        if name and name not in lists:
            raise UnknownNameError("list", name, lists, where=option)
        by_list.setdefault(name, []).append(f"{role}{equals}{column}")
    columns = {name: _parse_columns(each, RUN_ROLES, option) for name, each in by_list.items()}
    common = columns.pop("", {})
    joined = {name: {**common, **columns.get(name, {})} for name in lists}
    return {name: each for name, each in joined.items() if each}


def _parse_by_file(values: Sequence[str], option: str, every: Sequence[str]) -> dict[str, str]:
    """File → value of ``NAME=VALUE``; a value without a name is that of ``every`` file.

    Raises:
        typer.BadParameter: A name is missing and needed, or has two values.
    """
    shared = [given for given in values if every and "=" not in given]
    if len(shared) > 1:
        raise typer.BadParameter(f"{shared[1]!r}: given twice: drop one", param_hint=option)
    by_file = _parse_pairs([given for given in values if given not in shared], option, "NAME=VALUE")
    return {name: value for value in shared for name in every} | by_file


def _parse_columns(values: Sequence[str], roles: Sequence[str], option: str) -> dict[str, str]:
    columns = _parse_pairs(values, option, "ROLE=NAME")
    for role in columns:
        if role not in roles:
            raise UnknownNameError("role", role, roles, where=option)
    return columns


def _parse_pairs(
    values: Iterable[str], option: str, form: str, *, is_valid: Callable[[str], bool] = bool
) -> dict[str, str]:
    """Value by name of ``NAME=VALUE``.

    Args:
        values: The pairs.
        option: What a message calls them.
        form: How a pair is written.
        is_valid: Whether a value can be one.

    Raises:
        typer.BadParameter: A pair is of another form, or a name has two values.
    """
    pairs: dict[str, str] = {}
    for given in values:
        name, _, value = given.partition("=") if is_valid is bool else given.rpartition("=")
        if not name or not is_valid(value):
            raise typer.BadParameter(f"{given!r} is not {form}", param_hint=option)
        if name in pairs:
            raise typer.BadParameter(f"{name!r} appears twice: drop one", param_hint=option)
        pairs[name] = value
    return pairs


def report_file(path: Path) -> Path:
    """The record in the folder of a report, or the file itself."""
    return path / "report.json" if path.is_dir() else path


def parse_named_files(values: Sequence[str], option: str) -> dict[str, Path]:
    """File by name; a file without a name has its own, without the suffix.

    Args:
        values: ``NAME=FILE`` or ``FILE``.
        option: What a message calls them.

    Raises:
        typer.BadParameter: A name or a file is missing.
        ConfigError: A name appears twice.
    """
    from fusion_bench.io.formats import source_name

    files: dict[str, Path] = {}
    for value in values:
        name, given, file = value.partition("=")
        if not given or Path(value).exists():
            name, file = source_name(Path(value)), value
        if not name or not file:
            raise typer.BadParameter(f"{value!r} is not NAME=FILE", param_hint=option)
        if name in files:
            raise ConfigError(
                f"{option}: {name!r} appears twice, for {files[name]} and {file}: name one of "
                "them: NAME=FILE"
            )
        files[name] = Path(file)
    return files


def parse_rerank_files(values: Sequence[str]) -> dict[str, RerankFile]:
    """Rerank list by name: ``NAME=FILE``, or ``NAME:SPACE=FILE`` with what its numbers mean.

    Raises:
        typer.BadParameter: As for :func:`parse_named_files`; so a ConfigError.
        UnknownNameError: No such score space.
    """
    from fusion_bench.data.records import ScoreSpace
    from fusion_bench.evaluation.starter import RerankFile

    lists: dict[str, RerankFile] = {}
    for label, path in parse_named_files(values, "--rerank").items():
        name, has_space, space = label.partition(":")
        if has_space and space not in get_args(ScoreSpace):
            raise UnknownNameError("score space", space, get_args(ScoreSpace), where="--rerank")
        if not name or name in lists:
            raise typer.BadParameter(
                f"{label!r}: no name, or one used twice", param_hint="--rerank"
            )
        lists[name] = RerankFile(path, space if has_space else None)  # type: ignore[arg-type]
    return lists

"""What a ``dataset.yaml`` says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_serializer, field_validator

from fusion_bench.config.fields.conditions import FieldConditions
from fusion_bench.config.files.yaml_source import Source, read_yaml
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.query_groups.find_groups import Grouping
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.rows.read_options import ReadOptions
from fusion_bench.data.switches import Switch, check_field
from fusion_bench.errors import ConfigError
from fusion_bench.io.specs.families import Family
from fusion_bench.io.specs.file_spec import FileColumns, FileSpec
from fusion_bench.io.specs.judgment_specs import JudgeSpec, QrelsSpec
from fusion_bench.io.trials.trial_files import expand_path

FILE = "dataset.yaml"
#: What values of ``groups`` mean; another one names a file.
GROUPINGS: Final[Mapping[str | None, Grouping]] = {
    None: "identical",
    "identical": "identical",
    "auto": "auto",
    "none": "none",
    "declared": "none",
}


class RunColumns(FileColumns):
    """The names of a run's columns."""

    score: str | None = None
    rank: str | None = None


class ListSpec(FileSpec):
    """One list of a ``dataset.yaml``: its file, roles and :class:`ReadOptions`.

    Attributes:
        refined: A file of the same kind, with what the list returns for refined queries, under the
            ids of the original ones; only CRAG's verdicts read it.
        family: The model family behind it, such as ``gpt``; None = none, or not known.
    """

    refined: str | None = None
    family: Family | None = None
    columns: RunColumns | None = None
    roles: tuple[str, ...] = ()
    rank_from: Literal["score", "column"] = "score"
    source_ties: Literal["trec", "file"] = "trec"
    on_duplicate: Literal["error", "best_rank"] = "error"
    drop_zero_scores: bool = False

    @property
    def read_options(self) -> ReadOptions:
        """The options that decide its ranks."""
        return ReadOptions(
            self.rank_from, self.source_ties, self.on_duplicate, self.drop_zero_scores
        )


class RunSpec(ListSpec):
    """One run of a ``dataset.yaml``.

    Attributes:
        when: Field of a query → the values with which the run is on. For every other query it
            returns nothing and weighs 0; None = it is on for all.
    """

    when: Annotated[FieldConditions, Field(min_length=1)] | None = None


class RerankSpec(ListSpec):
    """One rerank list: as a run, plus what its numbers mean."""

    score_space: ScoreSpace


class DatasetSpec(StrictModel):
    """What a ``dataset.yaml`` says.

    Attributes:
        name: The dataset's name.
        version: Raised by its owner when the contents change.
        description: One line for ``dataset list``.
        license: Terms of the data.
        qrels: File of judgments: its path, or a mapping with its path, format, columns and judge;
            None = nothing is judged yet.
        judges: Files with the grades of further judges, by name.
        queries: JSON Lines of queries: text, type, intent, confidence, group, split, and others.
        groups: How the groups of ``queries`` are joined. ``identical``: queries with the same
            normalized text, or the same lists, are one group, and reports warn of
            near-duplicates. ``auto``: so are those with similar texts or equal judgments.
            ``none`` (or ``declared``): no other queries than those of a declared group depend on
            each other. Or JSON Lines with the ``id`` and ``group`` of queries.
        documents: JSON Lines of documents: id, text.
        judgments: How the judgments came about; says what an unjudged document means. None = not
            declared.
        runs: Run files by name.
        rerank: Rerank lists by name.
        binary_relevance: Grade from which binary measures count a document as relevant.
        follow_links_to: Folders outside the dataset's own that its symbolic links may lead to,
            such as a shared store; relative to its folder.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"licence": "this key is called 'license' now"}

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    version: str = "1"
    description: str = ""
    license: str = ""
    qrels: QrelsSpec | None = None
    judges: dict[str, JudgeSpec] = Field(default_factory=dict)
    queries: str | None = None
    groups: Annotated[str, Field(min_length=1)] | None = None
    documents: str | None = None
    judgments: Literal["pooled", "sparse", "complete"] | None = None
    runs: dict[str, RunSpec] = Field(default_factory=dict)
    rerank: dict[str, RerankSpec] = Field(default_factory=dict)
    binary_relevance: Annotated[int, Field(ge=1)] = 1
    follow_links_to: tuple[str, ...] = ()

    @property
    def is_judged_by_machine(self) -> bool:
        """Whether a model gave the judgments."""
        return self.qrels is not None and self.qrels.kind == "machine"

    @property
    def has_refined_lists(self) -> bool:
        """Whether a list has a file for refined queries."""
        return any(each.refined for each in (*self.runs.values(), *self.rerank.values()))

    @property
    def grouping(self) -> Grouping:
        """How the declared groups are joined."""
        return GROUPINGS.get(self.groups, "file")

    @property
    def group_file(self) -> str | None:
        """The path of the file of groups; None = there is none."""
        return self.groups if self.grouping == "file" else None

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of its files and folders, as it names them."""
        lists = (*self.runs.values(), *self.rerank.values())
        listed = [path for each in lists for path in (each.path, each.refined)]
        listed += [judge.path for judge in self.judges.values()]
        qrels = None if self.qrels is None else self.qrels.path
        paths = (qrels, self.queries, self.group_file, self.documents, *listed)
        return tuple(path for path in paths if path is not None)

    def file_paths(self, folder: Path) -> tuple[Path, ...]:
        """The same files, each trial of a list by itself; they need not exist.

        Args:
            folder: Of the dataset.
        """
        return tuple(path for given in self.files for path in expand_path(folder, given))

    def list_paths(self, folder: Path) -> tuple[Path, ...]:
        """The files of the judgments and of all lists."""
        judged = () if self.qrels is None else (self.qrels,)
        files = (*judged, *self.runs.values(), *self.rerank.values())
        return tuple(path for file in files for path in expand_path(folder, file.path))

    @field_validator("qrels", mode="before")
    @classmethod
    def _expand_path(cls, value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        return {"path": value} if isinstance(value, str) else value

    @field_serializer("qrels")
    def _shorten_path(self, value: QrelsSpec | None) -> object:
        if value is None:
            return None
        given = value.model_dump(exclude_none=True, exclude_defaults=True)
        return value.path if len(given) == 1 else given


def read_spec(path: Path) -> tuple[DatasetSpec, Source]:
    """What a ``dataset.yaml`` says, and where it says it."""
    source = read_yaml(path)
    return parse_model(DatasetSpec, source.data, source.where), source


def make_switches(
    spec: DatasetSpec, source: Source, qrels: Qrels, queries: Mapping[str, Query]
) -> dict[str, Switch]:
    """The switch of each run with a condition, by the run's name.

    Args:
        spec: What the ``dataset.yaml`` says.
        source: Where it says it.
        qrels: The judgments; a judged query of which nothing else is known counts too.
        queries: What is known of the queries, by id.

    Raises:
        ConfigError: A condition, and no queries file; or a field of lists or objects.
        UnknownNameError: A field that no query has.
    """
    conditions = {name: run.when for name, run in spec.runs.items() if run.when is not None}
    every = [*queries.values(), *(Query(q) for q in qrels.queries if q not in queries)]
    switches = {}
    for name, condition in conditions.items():
        where = source.where(("runs", name, "when"))
        if spec.queries is None:
            raise ConfigError(
                f"{where}: a run is on by fields of the queries, and there are none: name their "
                "file as 'queries'"
            )
        for field in condition:
            check_field(field, queries.values(), where)
        switches[name] = Switch.for_queries(condition, every)
    return switches

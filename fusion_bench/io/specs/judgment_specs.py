"""Files of grades: the judgments that decide every value, and those of further judges."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from fusion_bench.io.specs.families import Family
from fusion_bench.io.specs.file_spec import FileColumns, FileSpec

#: Who gave the grades: people, or a model.
JudgeKind: TypeAlias = Literal["human", "machine"]


class QrelsColumns(FileColumns):
    """The names of the columns of judgments."""

    grade: str | None = None


class GradeFileSpec(FileSpec):
    """A file of grades, and who gave them.

    Attributes:
        kind: ``human`` = people; ``machine`` = a model.
        family: The family of that model, such as ``gpt``; None = not known.
    """

    columns: QrelsColumns | None = None
    kind: JudgeKind = "human"
    family: Family | None = None

    @model_validator(mode="after")
    def _refuse_human_family(self) -> GradeFileSpec:
        if self.kind == "human" and self.family is not None:
            raise ValueError(
                f"people have no model family, given family {self.family!r}: write "
                "'kind: machine', or delete 'family'"
            )
        return self


class QrelsSpec(GradeFileSpec):
    """The file of the judgments.

    Attributes:
        unmeasured: Whether the gate accepts a machine's grades whose agreement with people is not
            measured, or not shown.
    """

    unmeasured: Literal["refuse", "accept"] = "refuse"


class JudgeSpec(GradeFileSpec):
    """The grades of one further judge, on the scale of the judgments.

    Attributes:
        sample: How the queries of this judge were chosen: ``random`` = a random sample of all
            queries; ``chosen`` = by what they could change. None = not stated.
        map: Grade in the file → grade on the scale of the judgments; None = the same scale.
    """

    kind: JudgeKind
    sample: Literal["random", "chosen"] | None = None
    map: Annotated[dict[int, int], Field(min_length=1)] | None = None

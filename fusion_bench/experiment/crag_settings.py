"""The settings of ``crag:``, of an experiment and of its ``tune:``."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from fusion_bench.config.limits import Rank
from fusion_bench.config.models import StrictModel

#: What is said of a list, by the names of CONV-03-05.
Verdict: TypeAlias = Literal["correct", "ambiguous", "incorrect"]


#: On the unit scale of the scores.
UnitNumber: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class CragRule(StrictModel):
    """Thresholds on the best rerank score: is there a relevant document in the top of the list?

    Attributes:
        upper: At or above it the verdict is ``correct``.
        lower: At or below it the verdict is ``incorrect``, between them ``ambiguous``.
        top: Documents of the list that count.
        grade: From which a document is relevant.
    """

    upper: UnitNumber = 0.7
    lower: UnitNumber = 0.3
    top: Rank = 10
    grade: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _check_order(self) -> CragRule:
        if self.lower > self.upper:
            raise ValueError(f"lower {self.lower:g} is above upper {self.upper:g}: swap them")
        return self


class CragSettings(CragRule):
    """The settings of an experiment's ``crag:``.

    Attributes:
        refine: The verdicts after which the lists of the refined query are taken, where the
            dataset has some.
    """

    refine: tuple[Verdict, ...] = ("incorrect", "ambiguous")


class CragFitSettings(CragRule):
    """The settings of ``tune: crag:``; its thresholds are the default to beat.

    Attributes:
        credit: Utility of ``ambiguous``, where a right verdict has 1 and a wrong one 0.
    """

    credit: Annotated[float, Field(ge=0.5, lt=1)] = 0.75

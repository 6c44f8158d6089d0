"""The contract of a measure."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field, StrictBool, model_validator

from fusion_bench.config.models import MOST_RANK
from fusion_bench.config.plugins import distribution_of
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.measures.rankings import Ranking, ReturnedDocuments, TiedLists

#: The documents whose ranks a measure reads: relevant ones, judged ones, or all.
RequiredRanks: TypeAlias = Literal["relevant", "judged", "all"]
PositiveInt = Annotated[int, Field(ge=1, strict=True)]

#: Names before brackets and cutoff, ours and those of ir_measures.
BOUNDED: Final = frozenset(
    (
        *("nDCG", "RR", "R", "AP", "P", "Success", "Judged", "Rprec", "Bpref", "infAP", "IPrec"),
        *("SetP", "SetR", "SetF", "SetAP", "SetRelP", "RBP", "ERR", "nERR", "Accuracy", "Compat"),
        *("alpha_nDCG", "ERR_IA", "nERR_IA", "nNRBP", "P_IA", "AP_IA", "STREC"),
        "answered",  # a check of the gate, which is no measure of a list
    )
)


def is_bounded(name: str) -> bool:
    """Whether all values of a measure lie in [0, 1]; False where that is not known.

    Args:
        name: As ir_measures names it, such as ``nDCG(dcg='exp-log2')@10``.
    """
    head = re.split(r"[(@]", name, maxsplit=1)[0]
    return head in BOUNDED and (head != "RBP" or "rel=" in name)  # else its gains are grades


def greatest_cutoff(measures: Sequence[Measure]) -> int | None:
    """The last rank that some of the measures reads; None = all count."""
    cutoffs = [measure.cutoff for measure in measures if measure.cutoff is not None]
    return max(cutoffs, default=0) if len(cutoffs) == len(measures) else None


class Measure(Method):
    """One measure of one ranked list.

    A measure needs ``compute_values`` alone; the fields of its class are the options of its name::

        @measure_classes.register
        class HitAtOne(BinaryMeasure):
            \"\"\"``Hit``: whether the first document is relevant.\"\"\"

            method: str = "Hit"

            def compute_values(self, ranking: Ranking) -> FloatArray:
                first = ranking.relevant(self.rel).within_cutoff(1)
                return np.bincount(first.query, minlength=ranking.size).astype(np.float64)

    Attributes:
        method: The name before brackets and cutoff, such as ``nDCG``.
        cutoff: Only the first ``cutoff`` ranks count; None = the whole list.
        judged_only: Unjudged documents are taken out of the list first.
        needs_cutoff: Whether a cutoff is required.
        required_ranks: ``relevant`` lets the batch engine evaluate it from the ranks of relevant
            documents alone; ``all`` is always right.
        external_options: Options with which ir_measures computes it instead.
    """

    needs_cutoff: ClassVar[bool] = False
    required_ranks: ClassVar[RequiredRanks] = "all"
    external_options: ClassVar[frozenset[str]] = frozenset()

    cutoff: Annotated[PositiveInt, Field(le=MOST_RANK)] | None = None
    judged_only: StrictBool = False

    @model_validator(mode="after")
    def _check_cutoff(self) -> Measure:
        if self.needs_cutoff and self.cutoff is None:
            raise ValueError(f"{self.method} needs a cutoff, such as {self.method}@10")
        return self

    @property
    def is_bounded(self) -> bool:
        """Whether all values lie in [0, 1]; False where that is not known."""
        return is_bounded(self.name)

    @abstractmethod
    def compute_values(self, ranking: Ranking) -> FloatArray:
        """(Q,): its value for each query; 0 for an empty list."""

    def expected_value(
        self,
        lists: TiedLists,
        depth: IntArray,  # noqa: ARG002 - closed forms read it
    ) -> FloatArray:
        """(Q,): its mean over all orders inside every group of ties; NaN = no formula.

        Args:
            lists: The lists; of judged documents only where the measure says so.
            depth: Shape (Q,): documents beyond this rank do not count.
        """
        return np.full(len(lists.runs.queries), np.nan)

    def filled_values(
        self,
        returned: ReturnedDocuments,  # noqa: ARG002 - measures with a formula read it
    ) -> FloatArray | None:
        """(Q,): its values where unjudged documents have the gain of judged ones at their rank.

        A gain may be a fraction. To a sum of gains that is all; a measure that asks which
        document is relevant takes it for a probability, independent from document to document,
        and gives its expected value. No value exceeds 1; ideals are those of the judgments.

        Returns:
            None = no formula. NaN where a list has documents, and none of any list is judged.
        """
        return None

    def cut_depth(self, depth: IntArray) -> IntArray:
        """(Q,): the depth, but at most the cutoff."""
        return depth if self.cutoff is None else np.minimum(depth, self.cutoff)

    def with_judged_only(self) -> Measure:
        """The measure, restricted to judged documents."""
        return self.model_copy(update={"judged_only": True})

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """What may stand in the brackets of its name, ``judged_only`` last."""
        options = [key for key in cls.model_fields if key not in Measure.model_fields]
        return (*(key for key in options if key != "default_rel"), "judged_only")

    @property
    def name(self) -> str:
        """The name as ir_measures prints it, the same for every spelling of the measure."""
        options = ",".join(f"{key}={getattr(self, key)!r}" for key in self._shown_options())
        brackets = f"({options})" if options else ""
        return f"{self.method}{brackets}" + ("" if self.cutoff is None else f"@{self.cutoff}")

    def _shown_options(self) -> list[str]:
        """Options that differ from their default."""
        fields = type(self).model_fields
        return [key for key in self.option_names() if getattr(self, key) != fields[key].default]

    def __str__(self) -> str:
        return self.name


class BinaryMeasure(Measure):
    """A measure to which a document is relevant or not.

    Attributes:
        rel: The grade from which a document is relevant.
        default_rel: The grade that the dataset declares. Where it is not 1, the name states
            ``rel`` even if that is 1: read again, a name without it would mean ``default_rel``.
    """

    rel: PositiveInt = 1
    default_rel: PositiveInt = 1

    def _shown_options(self) -> list[str]:
        shown = super()._shown_options()
        return ["rel", *shown] if self.default_rel != 1 and "rel" not in shown else shown


def list_distributions(measures: Iterable[Measure]) -> dict[str, str]:
    """Name → ``name==version`` of the distribution of each measure from another distribution."""
    origins = {measure.name: distribution_of(type(measure)) for measure in measures}
    return {name: origin for name, origin in sorted(origins.items()) if origin is not None}


measure_classes: MethodRegistry[Measure] = MethodRegistry(
    *("measure", "fusion_bench.measures", "fusion_bench.measures", Measure),
    adapter="fusion_bench.measures._own_function:FunctionMeasure",
)

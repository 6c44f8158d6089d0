"""The methods of a system as YAML gives them: by name, or as a mapping with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, ValidationInfo

from fusion_bench.blend import Blend, blends
from fusion_bench.blend.none import NoBlend
from fusion_bench.config.limits import Rank
from fusion_bench.config.models import StrictModel
from fusion_bench.config.query_types import TypeSource
from fusion_bench.experiment.dialect import dialects
from fusion_bench.fuse import Fusion, fusions
from fusion_bench.fuse.rrf import RRF
from fusion_bench.policies import Policy, policies


def _build_fusion(data: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The fusion that YAML describes, in the terms of the system's dialect."""
    name = info.data.get("dialect")
    return (
        fusions.validate_field(data)
        if name is None
        else dialects.find_plugin(name).build_fusion(data)
    )


def _build_policy(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    return None if data is None else policies.validate_field(data)


AnyFusion = Annotated[SerializeAsAny[Fusion], BeforeValidator(_build_fusion)]
AnyBlend = Annotated[SerializeAsAny[Blend], BeforeValidator(blends.validate_field)]
AnyPolicy = Annotated[SerializeAsAny[Policy], BeforeValidator(_build_policy)]
#: The rank that a source is cut at.
Depth = Rank


def _read_type_source(value: object) -> object:
    """``given`` for ``true``, as in "true types"; anything else as it is."""
    return "given" if value is True or value == "true" else value


#: Which types count; None = the given ones.
Types = Annotated[TypeSource, BeforeValidator(_read_type_source)]


class PerTypeConfig(StrictModel):
    """Fusion and blend for the queries of one type or intent."""

    fusion: AnyFusion = RRF()
    blend: AnyBlend = NoBlend()


def refuse_together(model: StrictModel, *groups: Sequence[str]) -> None:
    """Refuse a model of which two fields of one group are given.

    Raises:
        ValueError: Names them.
    """
    for group in groups:
        stated = [name for name in group if getattr(model, name) is not None]
        if len(stated) > 1:
            raise ValueError(f"{' and '.join(stated)} exclude each other: keep one")

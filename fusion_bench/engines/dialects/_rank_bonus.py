"""Reciprocal rank fusion with a bonus for top ranks, its blend by fused rank, as TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fusion_bench.engines.dialects._configuration import read_file
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, fit_blend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, NoBlend, PositionAware, Replace
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF, RRFv2

#: What is written of ``position_aware``, beside its reranker.
WRITABLE = frozenset({"depth", "tiers", "rest"})


class BonusFusion(EngineFusion, RRFv2):
    """Our ``rrf_v2`` under an engine's name of it."""

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion:
        """Our ``rrf_v2``."""
        return RRFv2.model_validate(self.model_dump(exclude={"method"}))


def find_bonus_sum(draft: Draft) -> dict[str, Any] | None:
    """``k``, ``weights`` and ``bonus`` of a sum of reciprocal ranks; None = it is none.

    What is lost: a k of its own for each list, a bonus that is not that of the best rank, and a
    scale that the blend would see.
    """
    fusion = draft.fusion
    if not isinstance(fusion, RRF | RRFv2):
        return None
    sources, roles = draft.sources, [draft.roles[name] for name in draft.sources]
    constants = fusion.source_numbers("k", sources, roles).tolist()
    k = constants[0]
    if len(set(constants)) > 1:
        k = sum(constants) / len(constants)
        draft.lose(f"k: one for all lists, {k:g}")
    bonus: dict[int, float] = {}
    if isinstance(fusion, RRFv2) and any(fusion.bonus.values()):
        unit = 1.0 if fusion.bonus_unit == "absolute" else 1 / (k + 1)
        bonus = {rank: value * unit for rank, value in fusion.bonus.items()}
        if fusion.bonus_scope != "best_rank":
            draft.lose(f"bonus_scope: best_rank instead of {fusion.bonus_scope}")
    if fusion.normalize == "three_lists":
        draft.lose("normalize: three_lists is left out: scores differ", "rank-equivalent")
    is_seen = getattr(draft.blend, "retrieval", None) == "fused"
    if fusion.normalize != "none" and is_seen:
        draft.lose("normalize: the blend reads raw fused scores")
    weights = dict(zip(sources, fusion.source_weights(sources, roles).tolist(), strict=True))
    return {"k": k, "weights": weights, "bonus": bonus}


def bonus_weights(system: System) -> dict[str, float]:
    """The weight of each source of a system that can be written.

    Raises:
        ConfigError: It has weights by role, or parameters of ``rrf`` that no engine has.
    """
    fusion = system.fusion.model_dump()
    given = fusion["weights"]
    plain = {
        "normalize": "none",
        "alpha": None,
        "bonus_scope": "best_rank",
        "bonus_unit": "absolute",
    }
    misfits = [f"weights.{key}" for key in given if key not in system.runs]
    misfits += [key for key, value in plain.items() if fusion.get(key, value) != value]
    misfits += ["k"] if isinstance(fusion["k"], Mapping) else []
    if misfits:
        raise ConfigError(
            f"system {system.name!r}: fusion.{', fusion.'.join(misfits)} cannot be written: "
            "translate it first"
        )
    return {name: given.get(name, 1.0) for name in system.runs}


def has_question(draft: Draft) -> bool:
    """Whether some source has the role that a bonus fusion needs."""
    return any("question" in draft.roles[name] for name in draft.sources)


def make_position_aware(draft: Draft) -> None:
    """Set the draft's blend to ``position_aware``, which every linear blend is a case of."""
    blend = draft.blend
    if isinstance(blend, Replace | Linear):
        share = 1 - blend.beta if isinstance(blend, Linear) else 0.0
        given = blend.model_dump(exclude={"method", "beta"})
        if isinstance(blend, Replace):
            given["retrieval"] = draft.dialect.blend_defaults["retrieval"]
        draft.blend = PositionAware(**given, tiers={}, rest=share)
    fit_blend(draft, WRITABLE)


def dump_blend(blend: object) -> dict[str, Any] | None:
    """What is written of a blend; None = there is none."""
    if isinstance(blend, PositionAware):
        tiers = [[limit, weight] for limit, weight in blend.tiers.items()]
        depth = {"reranker": blend.reranker, "depth": blend.depth}
        return {**depth, "tiers": tiers, "rest": blend.rest}
    return None


def load_blend(data: Mapping[str, Any] | None) -> dict[str, Any]:
    """The ``blend`` of a system from what :func:`dump_blend` gave."""
    if data is None:
        return {"blend": NoBlend().model_dump()}
    tiers = {int(limit): weight for limit, weight in data["tiers"]}
    return {"blend": {**data, "tiers": tiers}}


CONSTANT = re.compile(r"^export const (\w+): [^=]+ = (.+);$", re.MULTILINE)


def write_constants(constants: Mapping[str, tuple[str, Any]]) -> str:
    """One exported constant a line.

    Args:
        constants: Name → its type and its value.
    """
    return "".join(
        f"export const {name}: {kind} = {json.dumps(value, allow_nan=False)};\n"
        for name, (kind, value) in constants.items()
    )


def read_constants(files: Mapping[str, str], name: str) -> dict[str, Any]:
    """Name → value of what :func:`write_constants` wrote.

    Raises:
        ConfigError: There is no such file.
        ValueError: A value is no JSON.
    """
    return {key: json.loads(value) for key, value in CONSTANT.findall(read_file(files, name))}

"""Reciprocal rank fusion with a bonus for top ranks, its blend by fused rank: qmd, ADR-005."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fusion_bench.engines.dialects._dialect import (
    EngineDialect,
    Form,
    Values,
    name_of,
    read_template,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, check_blend, fit_blend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Translation, dialects
from fusion_bench.experiment.experiment import V2_VARIABLE
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, NoBlend, PositionAware, Replace
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF, RRFv2

#: What is written of ``position_aware``, beside its reranker.
WRITABLE = frozenset({"depth", "tiers", "rest"})


class BonusFusion(EngineFusion, RRFv2):
    """Our ``rrf_v2`` under an engine's name of it."""

    ties = "first_seen"  # a stable sort

    def equivalent(self, _weights: dict[str, float], /) -> Fusion:
        """Our ``rrf_v2``."""
        return RRFv2.model_validate(self.model_dump(exclude={"method"}))


class BonusDialect(EngineDialect):
    """A dialect of such a fusion, which needs a source of role ``question``."""

    blends = (PositionAware, Replace, Linear)
    rank_base = 0
    precision = "float64"

    @classmethod
    def keep(cls, draft: Draft) -> Mapping[str, Any]:
        """Convert the fusion as that of any other system."""
        return cls.convert(draft)

    @classmethod
    def finish(cls, draft: Draft, fusion: Mapping[str, Any]) -> Translation:
        """Finish the translation, with a blend by fused rank."""
        if fusion["method"] != name_of(cls.methods[0]):
            fit_blend(draft, {"depth"})
            return super().finish(draft, fusion)
        blend = draft.blend
        if isinstance(blend, Replace | Linear):
            share = 1 - blend.beta if isinstance(blend, Linear) else 0.0
            given = blend.model_dump(exclude={"method", "beta"})
            if isinstance(blend, Replace):
                given["retrieval"] = cls.blend_defaults["retrieval"]
            draft.blend = PositionAware(**given, tiers={}, rest=share)
        fit_blend(draft, WRITABLE)
        return super().finish(draft, fusion)

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the blend and the weights by name."""
        check_blend(cls, system, cls.writable_blend(system))
        values, blend = super().list_values(system, roles), system.blend
        written: dict[str, Any] = {}
        if isinstance(blend, PositionAware | Replace):
            written = {"reranker": blend.reranker, "depth": blend.depth, "tiers": [], "rest": 0}
        if isinstance(blend, PositionAware):
            tiers = [[limit, weight] for limit, weight in blend.tiers.items()]
            written |= {"tiers": tiers, "rest": blend.rest}
        by_name = {each["name"]: each["weight"] for each in values["sources"]}
        return {**values, "blend": written or None, "weights_by_name": by_name}

    @classmethod
    def writable_blend(cls, _system: System) -> frozenset[str]:
        """Fields of the blend that are written."""
        return WRITABLE

    @classmethod
    def list_weights(cls, system: System) -> Mapping[str, float]:
        """The weights of a system without parameters of ``rrf`` that no engine has.

        Raises:
            ConfigError: It has such, or weights by role.
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


def _find_bonus_sum(draft: Draft) -> dict[str, Any]:
    """``k``, ``weights`` and ``bonus`` of a sum of reciprocal ranks.

    What is lost: a k of its own for each list, a bonus that is not that of the best rank, and a
    scale that the blend would see.
    """
    fusion = draft.fusion
    if not isinstance(fusion, RRF | RRFv2):
        draft.refuse_fusion()
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


#: In the code of qmd: best rank up to which → what is added.
QMD_BONUS = {1: 0.05, 3: 0.02}


class ReciprocalRankFusion(BonusFusion):
    """``reciprocalRankFusion``: Σ_s w_s / (k + rank) + bonus of the best rank, ranks from 1.

    A list of the original query weighs 2: give it the role ``question``, the keyword search too.
    """

    source = "tobi/qmd, src/store.ts"

    method: str = "reciprocalRankFusion"


@dialects.register
class Qmd(BonusDialect):
    """qmd 2.8."""

    name = "qmd"
    title = "qmd"
    version = "2.8"
    checked = "2026-11-22"
    source = "https://github.com/tobi/qmd"
    methods = (ReciprocalRankFusion,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 10}  # limit
    blend_defaults: ClassVar[Mapping[str, Any]] = {
        "method": "position_aware",
        "retrieval": "reciprocal_rank",
        "depth": 40,
        "tail": "drop",
    }
    ignores = (
        "The bonus is fixed: 0.05 at the best rank 1, 0.02 at ranks 2 and 3.",
        "The blend reads 1/(fused rank), not the fused score, so that rank 1 cannot move.",
    )

    forms = (Form({"search.ts": read_template("qmd.ts")}),)
    notes = (
        "qmd has no settings for these numbers: change them in its src/store.ts, or call its "
        "functions as written here.",
        "Only the first BLEND.depth fused results are reranked; TOP_K are returned.",
    )

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """Sums of reciprocal ranks; a bonus that is not qmd's is lost."""
        if not has_question(draft):
            draft.refuse("runs: a list of the original query, of role 'question', is needed")
        fusion = _find_bonus_sum(draft)
        if fusion["bonus"] != QMD_BONUS:
            draft.lose("bonus: 0.05 at the best rank 1, 0.02 at 2 and 3, in the code of qmd")
        return {"method": name_of(cls.methods[0]), **fusion, "bonus": QMD_BONUS}

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Only with the bonus of qmd's code."""
        fusion, values = system.fusion, super().list_values(system, roles)
        if not isinstance(fusion, ReciprocalRankFusion) or fusion.bonus != QMD_BONUS:
            raise ConfigError(f"system {system.name!r}: fusion.bonus: qmd's is {QMD_BONUS}")
        return values


class AdrRRFv2(BonusFusion):
    """``rrf_v2``: Σ_s w_s / (k + rank) + bonus of the best rank; the question weighs 2."""

    source = "ADR-005, decisions 1 and 2"

    method: str = "rrf_v2"


class AdrRRF(EngineFusion, RRF):
    """``rrf``: Σ_s 1 / (60 + rank), what ran before and runs where v2 is switched off."""

    source = "ADR-005, context"
    ties = "first_seen"

    method: str = "rrf"

    def equivalent(self, _weights: dict[str, float], /) -> Fusion:
        """Our ``rrf``."""
        return RRF.model_validate(self.model_dump(exclude={"method"}))


@dialects.register
class Adr005(BonusDialect):
    """ADR-005 of the first quarter of 2026."""

    name = "adr-005"
    title = "ADR-005"
    version = "2026-Q1"
    checked = "2026-11-22"
    source = "https://github.com/tobi/qmd"
    methods = (AdrRRFv2, AdrRRF)
    blend_defaults: ClassVar[Mapping[str, Any]] = {
        "method": "position_aware",
        "retrieval": "fused",
        "tail": "drop",
    }
    ignores = (
        "v1 has no weights and no bonus.",
        "The blend reads raw fused scores, at most about 0.12, so that its shares protect little.",
    )

    forms = (Form({"fusion.ts": read_template("adr_005.ts"), ".env": f"{V2_VARIABLE}=$is_v2!j\n"}),)
    notes = (
        "Only the first BLEND.depth fused documents are reranked, and only they are returned, "
        "TOP_K of them.",
    )

    @classmethod
    def convert(cls, draft: Draft) -> Mapping[str, Any]:
        """``rrf`` for reciprocal ranks of equal weights without a blend, else ``rrf_v2``."""
        fusion = _find_bonus_sum(draft)
        is_plain = len(set(fusion["weights"].values())) == 1 and not fusion["bonus"]
        if is_plain and not isinstance(draft.blend, PositionAware | Linear):
            return {"method": "rrf", "k": fusion["k"]}
        if not has_question(draft):
            draft.refuse("runs: v2 needs a source of role 'question'")
        return {"method": "rrf_v2", **fusion}

    @classmethod
    def writable_blend(cls, system: System) -> frozenset[str]:
        """Settings of the blend that can be written; of v1, the depth alone."""
        return WRITABLE if isinstance(system.fusion, AdrRRFv2) else frozenset({"depth"})

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Values of a system, with the bonus and the switch."""
        values, fusion = super().list_values(system, roles), system.fusion
        is_v2 = isinstance(fusion, AdrRRFv2)
        if not isinstance(system.blend, NoBlend | (PositionAware if is_v2 else Replace)):
            raise ConfigError(
                f"system {system.name!r}: blend: v1 replaces the fused score, and v2 blends by "
                "fused rank: translate it first"
            )
        if not is_v2 and len(set(values["weights"])) > 1:
            raise ConfigError(f"system {system.name!r}: fusion.weights: v1 has none: use rrf_v2")
        pairs = [[rank, value] for rank, value in getattr(fusion, "bonus", {}).items()]
        return {**values, "bonus_pairs": pairs, "is_v2": is_v2}

"""ADR-005: fusion v2 with its bonus and its blend by fused rank, and v1 behind a switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from fusion_bench.engines.dialects._configuration import (
    check_writable,
    most_results,
    refuse_unreadable,
    windows_by_source,
)
from fusion_bench.engines.dialects._rank_bonus import (
    WRITABLE,
    BonusFusion,
    bonus_weights,
    dump_blend,
    find_bonus_sum,
    has_question,
    load_blend,
    make_position_aware,
    read_constants,
    write_constants,
)
from fusion_bench.engines.dialects._translation import Draft, EngineFusion, check_blend, fit_blend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.experiment import V2_VARIABLE
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, NoBlend, PositionAware, Replace
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.fuse.rrf import RRF

FILE, SWITCH = "fusion.ts", ".env"

CODE = """\
// Ranks count from 1. Where %s is false, weights are 1, there is no bonus, and the reranker's
// score replaces the fused one.
%s
// Documents of each list, best first -> documents and fused scores, best first.
export function fuse(lists: Record<string, string[]>): [string, number][] {
  const scores = new Map<string, number>();
  const best = new Map<string, number>();
  for (const [name, window] of Object.entries(WINDOWS)) {
    (lists[name] ?? []).slice(0, window).forEach((document, index) => {
      const term = WEIGHTS[name] / (K + index + 1);
      scores.set(document, (scores.get(document) ?? 0) + term);
      best.set(document, Math.min(best.get(document) ?? Infinity, index + 1));
    });
  }
  for (const [document, rank] of best) {
    const bonus = BONUS.find(([limit]) => rank <= limit)?.[1] ?? 0;
    scores.set(document, (scores.get(document) ?? 0) + bonus);
  }
  return [...scores].sort((a, b) => b[1] - a[1]);
}

export function blend(rank: number, fusedScore: number, rerankScore: number): number {
  const share = BLEND?.tiers.find(([limit]) => rank <= limit)?.[1] ?? BLEND?.rest ?? 1;
  return share * fusedScore + (1 - share) * rerankScore;
}
"""


class AdrRRFv2(BonusFusion):
    """``rrf_v2``: Σ_s w_s / (k + rank) + bonus of the best rank; the question weighs 2."""

    source: ClassVar[str] = "ADR-005, decisions 1 and 2"

    method: str = "rrf_v2"


class AdrRRF(EngineFusion, RRF):
    """``rrf``: Σ_s 1 / (60 + rank), what ran before and runs where v2 is switched off."""

    source: ClassVar[str] = "ADR-005, context"

    method: str = "rrf"

    def equivalent(
        self,
        sources: Sequence[str],  # noqa: ARG002 - part of the contract
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - part of the contract
    ) -> Fusion:
        """Our ``rrf``."""
        return RRF.model_validate(self.model_dump(exclude={"method"}))


@dialects.register
class Adr005(Dialect):
    """ADR-005 of the first quarter of 2026."""

    name = "adr-005"
    title = "ADR-005"
    version = "2026-Q1"
    source = "https://github.com/tobi/qmd"
    methods = (AdrRRFv2, AdrRRF)
    blends = (PositionAware, Replace, Linear)
    blend_defaults: ClassVar[Mapping[str, Any]] = {
        "method": "position_aware",
        "retrieval": "fused",
        "tail": "drop",
    }
    rank_base = 0
    precision = "float64"
    ignores = (
        "v1 has no weights and no bonus.",
        "The blend reads raw fused scores, at most about 0.12, so that its shares protect little.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for reciprocal ranks of equal weights without a blend, else ``rrf_v2``."""
        draft = Draft(cls, system, roles)
        fusion = find_bonus_sum(draft)
        if fusion is None:
            return draft.refuse_fusion()
        is_plain = len(set(fusion["weights"].values())) == 1 and not fusion["bonus"]
        is_v1 = is_plain and not isinstance(draft.blend, PositionAware | Linear)
        if is_v1:
            fit_blend(draft, {"depth"})
            fusion = {"method": "rrf", "k": fusion["k"]}
        elif not has_question(draft):
            return draft.refuse("runs: v2 needs a source of role 'question'")
        else:
            make_position_aware(draft)
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """The constants, the switch, and what uses them."""
        check_writable(cls, system)
        fusion, blend = system.fusion, system.blend
        is_v2 = isinstance(fusion, AdrRRFv2)
        check_blend(cls, system, WRITABLE if is_v2 else {"depth"})
        if not isinstance(blend, NoBlend | (PositionAware if is_v2 else Replace)):
            raise ConfigError(
                f"system {system.name!r}: blend: v1 replaces the fused score, and v2 blends by "
                "fused rank: translate it first"
            )
        weights = bonus_weights(system)
        if not is_v2 and len(set(weights.values())) > 1:
            raise ConfigError(f"system {system.name!r}: fusion.weights: v1 has none: use rrf_v2")
        bonus = [[rank, value] for rank, value in getattr(fusion, "bonus", {}).items()]
        replaced = None
        if isinstance(blend, Replace):
            replaced = {"reranker": blend.reranker, "depth": blend.depth, "tiers": [], "rest": 0}
        numbers = "Record<string, number>"
        constants = write_constants(
            {
                "WINDOWS": (numbers, windows_by_source(system)),
                "WEIGHTS": (numbers, weights),
                "K": ("number", fusion.model_dump()["k"]),
                "BONUS": ("number[][]", bonus),
                "BLEND": (
                    "{ reranker: string; depth: number; tiers: number[][]; rest: number } | null",
                    replaced or dump_blend(blend),
                ),
                "TOP_K": ("number", most_results(system)),
            }
        )
        return Configuration(
            {
                FILE: CODE % (V2_VARIABLE, constants),
                SWITCH: f"{V2_VARIABLE}={str(is_v2).lower()}\n",
            },
            (
                "Only the first BLEND.depth fused documents are reranked, and only they are "
                "returned, TOP_K of them.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from such constants and the switch.

        Raises:
            ConfigError: They are none.
        """
        with refuse_unreadable(FILE, cls.title):
            constants = read_constants(files, FILE)
            switch = dict(line.split("=", 1) for line in files[SWITCH].split())
            windows = constants["WINDOWS"]
            fusion = {"method": "rrf", "k": constants["K"]}
            blend = load_blend(constants["BLEND"])
            if switch[V2_VARIABLE] == "true":
                bonus = {int(rank): value for rank, value in constants["BONUS"]}
                fusion |= {"method": "rrf_v2", "weights": constants["WEIGHTS"], "bonus": bonus}
            elif constants["BLEND"] is not None:
                kept = {key: constants["BLEND"][key] for key in ("reranker", "depth")}
                blend = {"blend": {"method": "replace", **kept}}
            return {
                "runs": list(windows),
                "dialect": cls.name,
                "fusion": fusion,
                "depth": windows,
                "top_k": constants["TOP_K"],
                **blend,
            }

"""qmd: reciprocal rank fusion with a bonus for top ranks, then a blend by fused rank."""

from __future__ import annotations

from collections.abc import Mapping
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
from fusion_bench.engines.dialects._translation import Draft, check_blend
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import Linear, PositionAware, Replace

FILE = "search.ts"
#: In the code of qmd: best rank up to which → what is added.
BONUS = {1: 0.05, 3: 0.02}

CODE = """\
// Ranks count from 1.
import { reciprocalRankFusion, type RankedResult } from "qmd/src/store";

%s
// Each list has at most WINDOWS[name] results; the result is what the reranker gets.
export function fuse(lists: Record<string, RankedResult[]>): RankedResult[] {
  const names = Object.keys(WINDOWS);
  const cut = names.map((name) => (lists[name] ?? []).slice(0, WINDOWS[name]));
  return reciprocalRankFusion(cut, names.map((name) => WEIGHTS[name]), K);
}

// As in hybridQuery: the retrieval's share goes by fused rank.
export function blend(rank: number, rerankScore: number): number {
  const share = BLEND?.tiers.find(([limit]) => rank <= limit)?.[1] ?? BLEND?.rest ?? 1;
  return share * (1 / rank) + (1 - share) * rerankScore;
}
"""


class ReciprocalRankFusion(BonusFusion):
    """``reciprocalRankFusion``: Σ_s w_s / (k + rank) + bonus of the best rank, ranks from 1.

    A list of the original query weighs 2: give it the role ``question``, the keyword search too.
    """

    source: ClassVar[str] = "tobi/qmd, src/store.ts"

    method: str = "reciprocalRankFusion"


@dialects.register
class Qmd(Dialect):
    """qmd 2.8."""

    name = "qmd"
    title = "qmd"
    version = "2.8"
    source = "https://github.com/tobi/qmd"
    methods = (ReciprocalRankFusion,)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 10}  # limit
    blends = (PositionAware, Replace, Linear)
    blend_defaults: ClassVar[Mapping[str, Any]] = {
        "method": "position_aware",
        "retrieval": "reciprocal_rank",
        "depth": 40,
        "tail": "drop",
    }
    rank_base = 0
    precision = "float64"
    ignores = (
        "The bonus is fixed: 0.05 at the best rank 1, 0.02 at ranks 2 and 3.",
        "The blend reads 1/(fused rank), not the fused score, so that rank 1 cannot move.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """Sums of reciprocal ranks; a bonus that is not qmd's is lost."""
        draft = Draft(cls, system, roles)
        if not has_question(draft):
            return draft.refuse("runs: a list of the original query, of role 'question', is needed")
        fusion = find_bonus_sum(draft)
        if fusion is None:
            return draft.refuse_fusion()
        if fusion["bonus"] != BONUS:
            draft.lose("bonus: 0.05 at the best rank 1, 0.02 at 2 and 3, in the code of qmd")
        make_position_aware(draft)
        return draft.finish({**fusion, "bonus": BONUS}, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """TypeScript that calls qmd's fusion and blends as qmd does."""
        check_writable(cls, system)
        check_blend(cls, system, WRITABLE)
        fusion = system.fusion
        if not isinstance(fusion, ReciprocalRankFusion) or fusion.bonus != BONUS:
            raise ConfigError(f"system {system.name!r}: fusion.bonus: qmd's is {BONUS}")
        numbers = "Record<string, number>"
        constants = write_constants(
            {
                "WINDOWS": (numbers, windows_by_source(system)),
                "WEIGHTS": (numbers, bonus_weights(system)),
                "K": ("number", fusion.k),
                "BLEND": (
                    "{ reranker: string; depth: number; tiers: number[][]; rest: number } | null",
                    dump_blend(system.blend),
                ),
                "TOP_K": ("number", most_results(system)),
            }
        )
        return Configuration(
            {FILE: CODE % constants},
            (
                "qmd has no settings for these numbers: change them in its src/store.ts, or call "
                "its functions as written here.",
                "Only the first BLEND.depth fused results are reranked; TOP_K are returned.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from such TypeScript.

        Raises:
            ConfigError: It is none.
        """
        with refuse_unreadable(FILE, cls.title):
            constants = read_constants(files, FILE)
            windows = constants["WINDOWS"]
            return {
                "runs": list(windows),
                "dialect": cls.name,
                "fusion": {"k": constants["K"], "weights": constants["WEIGHTS"]},
                "depth": windows,
                "top_k": constants["TOP_K"],
                **load_blend(constants["BLEND"]),
            }

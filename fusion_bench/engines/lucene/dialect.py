"""Apache Lucene: ``TopDocs.rrf`` and ``LogOddsFusionQuery``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.engines._dialects.canonical import CanonicalFusion
from fusion_bench.engines._dialects.configuration import (
    check_writable,
    read_file,
    refuse_unreadable,
    windows_by_source,
)
from fusion_bench.engines._dialects.translation import Draft, name_weights
from fusion_bench.engines.lucene._log_odds_query import (
    LogOddsFusionQuery,
    log_odds_code,
    read_log_odds,
)
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.fuse.log_odds import LogOdds
from fusion_bench.fuse.rrf import RRF

FILE = "Search.java"


class LuceneRRF(CanonicalFusion):
    """``rrf``: Σ_s 1 / (k + rank), ranks from 1; no weights.

    Attributes:
        k: Flattens the difference between neighboring ranks. Lucene has no default.
    """

    formula: ClassVar[str] = "Σ 1/(k + rank)"
    source: ClassVar[str] = "Lucene 10, TopDocs.rrf"

    method: str = "rrf"
    k: Annotated[int, Field(ge=1, le=1000)] = 60

    @property
    def canonical(self) -> RRF:
        """Our ``rrf`` without weights."""
        return RRF(k=self.k)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no weights
        """k, evenly by its logarithm."""
        return (integer("k", 1, 1000, log=True),)


@dialects.register
class Lucene(Dialect):
    """Apache Lucene 10, and LogOddsFusionQuery of the main branch."""

    name = "lucene"
    title = "Apache Lucene"
    version = "10.3"
    source = "https://lucene.apache.org/core/10_3_1/core/org/apache/lucene/search/TopDocs.html"
    methods = (LuceneRRF, LogOddsFusionQuery)
    ignores = (
        "TopDocs.rrf has no weights.",
        "A bonus for top ranks cannot be said.",
    )

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for sums of reciprocal ranks, a query of log-odds for ``log_odds``."""
        draft = Draft(cls, system, roles)
        if len(draft.sources) < 2:
            return draft.refuse("runs: two or more lists are fused")
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            if not ranks.has_equal_weights:
                draft.lose("weights: TopDocs.rrf has none; they are left out")
            fusion = {"k": draft.choose_rank_constant(ranks, 1)}
        elif isinstance(ours := draft.fusion, LogOdds):
            if ours.normalize.method != "none":
                return draft.refuse(
                    f"normalize: {ours.normalize.method!r} is the task of the clauses, which must "
                    "give probabilities"
                )
            total = sum(draft.weights.values())
            weights = {name: weight / total for name, weight in draft.weights.items()}
            fusion = {
                "method": "LogOddsFusionQuery",
                "alpha": ours.exponent,
                "gating": ours.gating,
                "weights": name_weights(weights),
            }
        else:
            return draft.refuse_fusion()
        if fusion.get("method") == "LogOddsFusionQuery":
            if system.depth is not None:
                draft.lose("depth: a query of log-odds has none")
            return draft.finish(fusion, top_k=system.top_k)
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """A Java method."""
        check_writable(cls, system)
        fusion, windows = system.fusion, windows_by_source(system)
        top = system.top_k or sum(windows.values())
        if isinstance(fusion, LogOddsFusionQuery):
            if system.depth is not None:
                raise ConfigError(f"system {system.name!r}: depth: a query of log-odds has none")
            body = log_odds_code(system, fusion, top)
        else:
            lists = "".join(
                f"        searcher.search(queries.get({json.dumps(name)}), {windows[name]}),\n"
                for name in system.runs
            )
            k = fusion.model_dump()["k"]
            body = (
                f"    TopDocs[] hits = {{\n{lists}    }};\n"
                f"    return TopDocs.rrf({top}, {k}, hits);\n"
            )
        code = (
            "import java.io.IOException;\nimport java.util.List;\nimport java.util.Map;\n"
            "import org.apache.lucene.search.*;\n\npublic final class Search {\n"
            "  public static TopDocs search(IndexSearcher searcher, Map<String, Query> queries)\n"
            f"      throws IOException {{\n{body}  }}\n}}\n"
        )
        note = "Give it the query of each list by its name."
        return Configuration({FILE: code}, (note,))

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from the Java method.

        Raises:
            ConfigError: It is none.
        """
        text = read_file(files, FILE)
        names = [
            json.loads(name) for name in re.findall(r'queries\.get\(("(?:[^"\\]|\\.)*")\)', text)
        ]
        call = re.search(r"TopDocs\.rrf\((\d+), (\d+), hits\)", text)
        if names and call is not None:
            limits = [int(limit) for limit in re.findall(r'"\), (\d+)\),$', text, re.MULTILINE)]
            return {
                "runs": names,
                "dialect": cls.name,
                "fusion": {"method": "rrf", "k": int(call[2])},
                "depth": dict(zip(names, limits, strict=True)),
                "top_k": int(call[1]),
            }
        with refuse_unreadable(FILE, cls.title):
            return read_log_odds(cls.name, text, names)

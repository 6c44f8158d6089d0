"""pgvector: reciprocal rank fusion and the convex combination as SQL for PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.engines.dialects._configuration import Values
from fusion_bench.engines.dialects._dialect import EngineDialect, Form
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks, ScaledScoreSum
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import WeightedFusion
from fusion_bench.methods.normalize.linear import MinMax

FILE = "search.sql"
RANK = 'ROW_NUMBER() OVER (lists ORDER BY score DESC, id COLLATE "C" DESC) AS rank'
SCALED = """\
COALESCE(
            (score - MIN(score) OVER lists)
            / NULLIF(MAX(score) OVER lists - MIN(score) OVER lists, 0),
            1
        ) AS scaled"""
STATEMENT = """\
WITH weights (list, weight) AS (VALUES
$[    ($name!q, $weight::double precision)$|,
$]
),
hits AS (
$[    (SELECT $name!q::text AS list, id::text AS id, score::double precision AS score FROM "LIST_$n"
     ORDER BY score DESC, id::text COLLATE "C" DESC LIMIT $window)$|
    UNION ALL
$]
),
ranked AS (
    SELECT list, id,
        %s
    FROM hits
    WINDOW lists AS (PARTITION BY list)
)
SELECT id, SUM(%s) AS score
FROM ranked JOIN weights USING (list)
GROUP BY id
ORDER BY score DESC, id COLLATE "C" DESC
LIMIT $top_k;
"""
RECIPROCAL = "weight / ($k::double precision + rank)"


class PgvectorRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (k + rank), ranks from 1.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ w/(k + rank)"
    source: ClassVar[str] = "pgvector-python, examples/hybrid_search/rrf.py"

    method: str = "rrf"
    k: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60


class PgvectorConvex(ScaledScoreSum, WeightedFusion):
    """``convex``: Σ_s w_s·(x − min)/(max − min); equal scores of a list count 1."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min)"
    source: ClassVar[str] = "Bruch, Gai, Ingber 2023, as SQL"

    scale = our_scale = MinMax()

    method: str = "convex"


@dialects.register
class Pgvector(EngineDialect):
    """SQL for PostgreSQL with pgvector 0.8."""

    name = "pgvector"
    title = "pgvector"
    version = "0.8"
    source = "https://github.com/pgvector/pgvector-python/blob/master/examples/hybrid_search/rrf.py"
    methods = (PgvectorRRF, PgvectorConvex)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 5}  # LIMIT of the example
    precision = "float64"
    ignores = ("A bonus for top ranks is not written.",)

    forms = (
        Form({FILE: STATEMENT % (RANK, RECIPROCAL)}, {"method": "rrf"}),
        Form({FILE: STATEMENT % (SCALED, "weight * scaled")}, {"method": "convex"}),
    )
    notes = (
        "Make a view or a subquery with an alias of each LIST_n, with columns id and score, the "
        "greater the better: (SELECT id, 1 - (embedding <=> '[…]') AS score FROM documents) for a "
        "vector search, (SELECT id, ts_rank_cd(textsearch, query) AS score FROM documents, "
        "plainto_tsquery('QUERY') query WHERE textsearch @@ query) for a full-text search.",
        "ORDER BY score DESC uses no vector index: order by embedding <=> '[…]' and LIMIT inside "
        "the subquery.",
    )
    score_methods: ClassVar[Mapping[str, str]] = {"min_max": "convex"}
    equal_scores = 1

    @classmethod
    def list_values(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Values:
        """Names that SQL can hold."""
        for name in system.runs:
            if "\x00" in name:
                raise ConfigError(
                    f"system {system.name!r}: runs: {name!r} cannot be written in SQL"
                )
        return super().list_values(system, roles)

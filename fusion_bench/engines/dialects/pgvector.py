"""pgvector: reciprocal rank fusion and the convex combination as SQL for PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fusion_bench.config.parameters import Parameter, integer
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.engines.dialects._configuration import (
    check_writable,
    most_results,
    read_file,
    unreadable,
    weights_by_source,
    windows_by_source,
)
from fusion_bench.engines.dialects._sums import GREATEST_K, ReciprocalRanks, ScaledScoreSum
from fusion_bench.engines.dialects._translation import Draft, name_weights
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Configuration, Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Fusion, WeightedFusion
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.methods.normalize.linear import MinMax

FILE = "search.sql"
NUMBER = r"[-+0-9.e]+"
#: A list in what is written: its name, and its window.
LIST = re.compile(r"SELECT ('(?:[^']|'')*')::text AS list, .*\n.*LIMIT (\d+)\)", re.IGNORECASE)
WEIGHT = re.compile(rf"^\s*\(('(?:[^']|'')*'), ({NUMBER})::double precision\)", re.MULTILINE)
CONSTANT = re.compile(rf"weight / \(({NUMBER})::double precision \+ rank\)")
RESULTS = re.compile(r"^LIMIT (\d+);", re.MULTILINE)

RANK = 'ROW_NUMBER() OVER (lists ORDER BY score DESC, id COLLATE "C" DESC) AS rank'
SCALED = """\
COALESCE(
            (score - MIN(score) OVER lists)
            / NULLIF(MAX(score) OVER lists - MIN(score) OVER lists, 0),
            1
        ) AS scaled"""


SUBQUERY = Template("""\
    (SELECT $name::text AS list, id::text AS id, score::double precision AS score FROM "LIST_$n"
     ORDER BY score DESC, id::text COLLATE "C" DESC LIMIT $limit)""")
STATEMENT = Template("""\
WITH weights (list, weight) AS (VALUES
$weights
),
hits AS (
$lists
),
ranked AS (
    SELECT list, id,
        $value
    FROM hits
    WINDOW lists AS (PARTITION BY list)
)
SELECT id, SUM($term) AS score
FROM ranked JOIN weights USING (list)
GROUP BY id
ORDER BY score DESC, id COLLATE "C" DESC
LIMIT $results;
""")


class PgvectorRRF(ReciprocalRanks, WeightedFusion):
    """``rrf``: Σ_s w_s / (k + rank), ranks from 1.

    Attributes:
        k: Flattens the difference between neighboring ranks.
    """

    formula: ClassVar[str] = "Σ w/(k + rank)"
    source: ClassVar[str] = "pgvector-python, examples/hybrid_search/rrf.py"

    method: str = "rrf"
    k: Annotated[int, Field(ge=0, le=GREATEST_K)] = 60

    @property
    def constant(self) -> float:
        """``k``: ranks count from 1."""
        return self.k

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """K and the weights."""
        return (integer("k", 1, GREATEST_K, log=True), *super().space(sources))


class PgvectorConvex(ScaledScoreSum, WeightedFusion):
    """``convex``: Σ_s w_s·(x − min)/(max − min); equal scores of a list count 1."""

    formula: ClassVar[str] = "Σ w·(x − min)/(max − min)"
    source: ClassVar[str] = "Bruch, Gai, Ingber 2023, as SQL"

    method: str = "convex"

    def scaled_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): min-max scores."""
        return MinMax().normalize_scores(runs)

    def equivalent(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> Fusion:
        """Our weighted mean of min-max scores with 0 for missing ones."""
        weights = self.source_weights(sources, roles).tolist()
        return WeightedScore(
            normalize=MinMax(), missing="zero", weights=dict(zip(sources, weights, strict=True))
        )


@dialects.register
class Pgvector(Dialect):
    """SQL for PostgreSQL with pgvector 0.8."""

    name = "pgvector"
    title = "pgvector"
    version = "0.8"
    source = "https://github.com/pgvector/pgvector-python/blob/master/examples/hybrid_search/rrf.py"
    methods = (PgvectorRRF, PgvectorConvex)
    defaults: ClassVar[Mapping[str, Any]] = {"depth": 20, "top_k": 5}  # LIMIT of the example
    precision = "float64"
    ignores = ("A bonus for top ranks is not written.",)

    @classmethod
    def translate(cls, system: System, roles: Mapping[str, frozenset[str]]) -> Translation:
        """``rrf`` for reciprocal ranks, ``convex`` for min-max scores."""
        draft = Draft(cls, system, roles)
        fusion: dict[str, Any]
        if draft.is_of_dialect:
            fusion = draft.keep_fusion()
        elif (ranks := draft.find_reciprocal_ranks()) is not None:
            constant = draft.choose_rank_constant(ranks, 0)
            fusion = {"method": "rrf", "k": constant, "weights": name_weights(ranks.weights)}
        elif (mean := draft.find_score_sum()) is not None:
            if mean.normalize.method != "min_max":
                return draft.refuse(f"normalize: {cls.title} has no {mean.normalize.method!r}")
            if mean.normalize.constant != 1:
                draft.lose("normalize: a list of equal scores counts 1")
            fusion = {"method": "convex", "weights": name_weights(draft.weights)}
        else:
            return draft.refuse_fusion()
        return draft.finish(fusion, **draft.choose_windows(by_source=True))

    @classmethod
    def write(cls, system: System) -> Configuration:
        """One statement of common table expressions."""
        check_writable(cls, system)
        for name in system.runs:
            if "\x00" in name:
                raise ConfigError(
                    f"system {system.name!r}: runs: {name!r} cannot be written in SQL"
                )
        fusion = system.fusion
        value, term = SCALED, "weight * scaled"
        if isinstance(fusion, PgvectorRRF):
            value, term = RANK, f"weight / ({fusion.k}::double precision + rank)"
        weights = ",\n".join(
            f"    ({_quote(name)}, {weight!r}::double precision)"
            for name, weight in weights_by_source(system).items()
        )
        sql = STATEMENT.substitute(
            weights=weights,
            lists="\n    UNION ALL\n".join(_write_lists(system)),
            value=value,
            term=term,
            results=most_results(system),
        )
        example = (
            "(SELECT id, 1 - (embedding <=> '[…]') AS score FROM documents) for a vector search, "
            "(SELECT id, ts_rank_cd(textsearch, query) AS score FROM documents, "
            "plainto_tsquery('QUERY') query WHERE textsearch @@ query) for a full-text search"
        )
        return Configuration(
            {FILE: sql},
            (
                "Make a view or a subquery with an alias of each LIST_n, with columns id and "
                f"score, the greater the better: {example}.",
                "ORDER BY score DESC uses no vector index: order by embedding <=> '[…]' and LIMIT "
                "inside the subquery.",
            ),
        )

    @classmethod
    def read(cls, files: Mapping[str, str]) -> dict[str, Any]:
        """A system from such a statement.

        Raises:
            ConfigError: It is none.
        """
        sql = read_file(files, FILE)
        depth = {_unquote(name): int(limit) for name, limit in LIST.findall(sql)}
        weights = {_unquote(name): float(weight) for name, weight in WEIGHT.findall(sql)}
        constant, results = CONSTANT.search(sql), RESULTS.search(sql)
        fusion: dict[str, Any] = {"method": "convex", "weights": weights}
        if constant is not None:
            fusion |= {"method": "rrf", "k": int(constant[1])}
        if not depth or set(depth) != set(weights) or results is None:
            raise unreadable(FILE, cls.title, "lists, weights or LIMIT are missing")
        limits = set(depth.values())
        return {
            "runs": list(depth),
            "dialect": cls.name,
            "fusion": fusion,
            "depth": limits.pop() if len(limits) == 1 else depth,
            "top_k": int(results[1]),
        }


def _write_lists(system: System) -> Iterator[str]:
    """One subquery a list: its best documents."""
    for n, (name, limit) in enumerate(windows_by_source(system).items(), 1):
        yield SUBQUERY.substitute(name=_quote(name), n=n, limit=limit)


def _quote(name: str) -> str:
    """A string literal of SQL; a backslash means itself, as PostgreSQL reads it by default."""
    return "'" + name.replace("'", "''") + "'"


def _unquote(literal: str) -> str:
    return literal[1:-1].replace("''", "'")

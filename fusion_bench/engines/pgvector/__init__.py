"""PostgreSQL with pgvector: its fusions as SQL."""

from fusion_bench.engines.pgvector.dialect import Pgvector

__all__ = ["Pgvector"]

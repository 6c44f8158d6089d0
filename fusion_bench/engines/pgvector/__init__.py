"""PostgreSQL with pgvector: its fusions as SQL, and its connector."""

from fusion_bench.engines.pgvector.connector import PgvectorConnector
from fusion_bench.engines.pgvector.dialect import Pgvector

__all__ = ["Pgvector", "PgvectorConnector"]

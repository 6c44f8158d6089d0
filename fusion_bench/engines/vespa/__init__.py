"""Vespa: its fusions and its connector."""

from fusion_bench.engines.vespa.connector import VespaConnector
from fusion_bench.engines.vespa.dialect import Vespa

__all__ = ["Vespa", "VespaConnector"]

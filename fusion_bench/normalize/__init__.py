"""Per-query score scaling: every normalizer of the folder, by name."""

from fusion_bench.normalize._base import AnyNormalizer, Normalizer, ScoreLists, normalizers

__all__ = ["AnyNormalizer", "Normalizer", "ScoreLists", "normalizers"]

"""Scaling of scores per query: one file a family of normalizers, found by name."""

from fusion_bench.normalize._base import AnyNormalizer, Normalizer, ScoreLists, normalizers

__all__ = ["AnyNormalizer", "Normalizer", "ScoreLists", "normalizers"]

"""Per-query score scaling: every normalizer of the folder, by name."""

from fusion_bench.normalize._base import AnyNormalizer, Lists, Normalizer, normalizers

__all__ = ["AnyNormalizer", "Lists", "Normalizer", "normalizers"]

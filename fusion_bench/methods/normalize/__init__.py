"""Scaling of scores per query: one file a family of normalizers, found by name."""

from fusion_bench.methods.normalize._base import AnyNormalizer as AnyNormalizer
from fusion_bench.methods.normalize._base import Normalizer as Normalizer
from fusion_bench.methods.normalize._base import ScoreLists as ScoreLists
from fusion_bench.methods.normalize._base import normalizers as normalizers

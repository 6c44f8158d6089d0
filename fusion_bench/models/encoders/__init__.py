"""Encoders: text → vector; :data:`encoders` finds them by name."""

from fusion_bench.models.encoders._base import TextEncoder, encoders

__all__ = ["TextEncoder", "encoders"]

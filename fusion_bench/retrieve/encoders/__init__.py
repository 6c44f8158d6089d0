"""Encoders: text → vector, one file a kind; :data:`encoders` finds them by name."""

from fusion_bench.retrieve.encoders._base import TextEncoder, encoders

__all__ = ["TextEncoder", "encoders"]

"""CONV-07-05: its fusions of keyword, semantic and graph search."""

from fusion_bench.engines.conv_07_05.dialect import Conv0705

__all__ = ["Conv0705"]

"""Tests of what benchmarks/ measures."""

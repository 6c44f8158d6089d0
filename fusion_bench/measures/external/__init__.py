"""Measures that ir_measures computes."""

"""Sweeps: one system of YAML with lists of values, as many systems with one value each."""

"""Simulation: a stored rerank list replayed under failures, latency and deadlines."""

"""A stored rerank list replayed under failures, latency and deadlines."""

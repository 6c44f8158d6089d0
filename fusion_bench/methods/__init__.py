"""Methods by name: normalizers, fusions, rerank blends, per-query policies."""

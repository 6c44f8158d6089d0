"""Methods by name: normalizers, fusions, rerank blends."""

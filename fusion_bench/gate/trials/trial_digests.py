"""One digest for all trials of a list."""

from __future__ import annotations

import hashlib

from fusion_bench.io.dataset import Dataset


def merge_trials(dataset: Dataset) -> dict[str, str]:
    """SHA-256 of each loaded part; of a list with several trials over those of its trials."""
    digests = dataset.digests()
    for part, count in sorted(dataset.trial_counts.items()):
        later = [f"{part} trial {n}" for n in range(2, count + 1)]
        each = [digests[part], *(digests.pop(name) for name in later)]
        digests[part] = hashlib.sha256("\n".join(each).encode()).hexdigest()
    return digests

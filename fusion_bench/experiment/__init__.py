"""Systems, experiments, settings. It imports nothing, so that ``--help`` can show defaults."""

from __future__ import annotations

from typing import Final

#: What is measured; the first is the primary measure.
DEFAULT_MEASURES: Final = ("nDCG@10", "RR@10", "R@100")

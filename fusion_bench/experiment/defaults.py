"""What an experiment says by default; nothing is imported, so that ``--help`` can show it."""

from __future__ import annotations

from typing import Final

#: What is measured; the first is the primary measure.
DEFAULT_MEASURES: Final = ("nDCG@10", "RR@10", "R@100")

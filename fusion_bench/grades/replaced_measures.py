"""Other measures than those of the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps


def replace_measures(names: Sequence[str]) -> list[str]:
    """The measures as an override of an experiment; none where no name is given."""
    return [f"measures={dumps(list(names))}"] if names else []

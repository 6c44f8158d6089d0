"""The ``lint:`` key of an experiment: findings that are accepted."""

from __future__ import annotations

from fusion_bench.config.models import StrictModel, UniqueNames


class LintSettings(StrictModel):
    """What ``fusion-bench lint`` and the tops of all pages leave out.

    Attributes:
        ignore: Ids of rules; ``docs/lint.md`` lists them.
    """

    ignore: UniqueNames = ()

"""What speaks against the data of a number, a sentence each."""

from __future__ import annotations

from fusion_bench.evaluation.report_records.record import ReportRecord


class DataWarning(ReportRecord):
    """One thing to know before a number is believed.

    Attributes:
        key: For programs, such as ``reversed`` or ``constant lists``; ``docs/formats.md`` lists
            them.
        text: A sentence or more.
    """

    key: str
    text: str

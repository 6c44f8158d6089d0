"""Options of what is imported: a log of searches."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fusion_bench.config.options import File, Folder, Name, Option, Options

OnDuplicate: TypeAlias = Literal["error", "last"]


class LogOptions(Options):
    """What is made of a log.

    Attributes:
        out: The folder to write.
        qrels: Judgments, which are copied; a log has none.
        queries: JSON Lines with the id and text of each query. Default: q1, q2, …
        name: The dataset's name. Default: the folder's.
        k: Constant of production's RRF.
        on_duplicate: Two searches for one query that differ: an error, or the last counts.
    """

    out: Folder
    qrels: File | None = None
    queries: File | None = None
    name: Name | None = None
    k: Annotated[int, Option(metavar="K", min=1, max=1000)] = 60
    on_duplicate: OnDuplicate = "error"

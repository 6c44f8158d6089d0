"""Connectors of engines that are a server, or a library that opens a local folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from fusion_bench.connector import HttpConnector


class ServerOrFolder(HttpConnector):
    """An engine at a URL, or in a folder of this machine.

    Attributes:
        url: URL of the server.
        path: Folder or file that the engine's library opens instead of a server; by default it is
            asked one question at a time, so that latencies hold no waiting.
    """

    url: str = ""
    path: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _ask_folders_in_turn(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if isinstance(data, Mapping) and data.get("path") is not None:
            return {"concurrency": 1, **data}
        return data

    @model_validator(mode="after")
    def _check_place(self) -> ServerOrFolder:
        if bool(self.url) == (self.path is not None):
            raise ValueError("either url (of a server) or path (of a local folder) is needed")
        return self

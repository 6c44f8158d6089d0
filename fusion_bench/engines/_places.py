"""Connectors of engines that are a server, or a library that opens a local folder."""

from __future__ import annotations

from pydantic import Field, model_validator

from fusion_bench.connector import HttpConnector


class ServerOrFolder(HttpConnector):
    """An engine at a URL, or in a folder of this machine.

    Attributes:
        url: URL of the server.
        path: Folder or file that the engine's library opens instead of a server.
    """

    url: str = ""
    path: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _check_place(self) -> ServerOrFolder:
        if bool(self.url) == (self.path is not None):
            raise ValueError("either url (of a server) or path (of a local folder) is needed")
        return self

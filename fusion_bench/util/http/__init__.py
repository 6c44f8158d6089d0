"""JSON over HTTP: bounded in size and time, and without a word of a server that shows a key."""

from fusion_bench.util.http.address import check_url
from fusion_bench.util.http.client import JsonClient, open_client
from fusion_bench.util.http.key_header import BASIC, BEARER, KeyHeader

__all__ = ["BASIC", "BEARER", "JsonClient", "KeyHeader", "check_url", "open_client"]

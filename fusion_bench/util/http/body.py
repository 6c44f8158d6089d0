"""Reading of a response's body, of which no server decides how long it is."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

#: What a client asks for; a body in another encoding is refused.
ACCEPTED_ENCODING: Final = "gzip"
_GZIP = {"gzip", "x-gzip"}


class BodyError(Exception):
    """A body that is too long, damaged, or in an encoding that nobody asked for."""


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """The decoded body, read piece by piece.

    No more than ``limit`` bytes are kept, and no more are read from the server or decompressed but
    for one piece of 64 KB.

    Args:
        response: A response whose body has not been read.
        limit: Most bytes, before and after decompression.

    Raises:
        BodyError: It is longer, damaged, or in an encoding that was not asked for.
    """
    decoder, body, received = _choose_decoder(response), bytearray(), 0
    async for piece in response.aiter_raw():
        received += len(piece)
        try:
            # One byte over the limit shows that there is more.
            body += piece if decoder is None else decoder.decompress(piece, limit + 1 - len(body))
        except zlib.error:
            raise BodyError("the compressed body is damaged") from None
        if received > limit or len(body) > limit:
            raise BodyError(f"the body is longer than {limit:,} bytes")
    if decoder is not None and not decoder.eof:
        raise BodyError("the compressed body is cut off")
    return bytes(body)


async def read_start(response: httpx.Response, limit: int) -> bytes:
    """The first bytes of a body, decoded as far as that is possible.

    Args:
        response: A response whose body has not been read.
        limit: How many bytes, before and after decompression.
    """
    try:
        decoder, start, received = _choose_decoder(response), bytearray(), 0
        async for piece in response.aiter_raw():
            received += len(piece)
            start += piece if decoder is None else decoder.decompress(piece, limit + 1 - len(start))
            if received >= limit or len(start) >= limit:
                break
    except (BodyError, zlib.error):
        return b""
    return bytes(start[:limit])


def _choose_decoder(response: httpx.Response) -> zlib._Decompress | None:
    """A decompressor; None = the body is sent as it is."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return None
    if encoding in _GZIP:
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    raise BodyError(f"the body has another encoding than {ACCEPTED_ENCODING}")

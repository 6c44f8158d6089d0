"""How a server may send back the key that it got: in which form, and where in its answer."""

import base64
import codecs
import json
import urllib.parse
from collections.abc import Callable, Iterable, Iterator

from tests.attacks.hostile_server import Request, respond
from tests.attacks.http_answers import rows

#: Letters, digits and marks, as keys have them.
KEY = "sk-QmFzZTY0+Zx9_v7LrT2wNp8Hd"

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "first half": lambda key: key[:14],
    "six characters": lambda key: key[11:17],
    "upper case": str.upper,
    "swapped case": str.swapcase,
    "reversed": lambda key: key[::-1],
    "in fives": lambda key: " ".join(key[i : i + 5] for i in range(0, len(key), 5)),
    "in fives with words": lambda key: " and ".join(key[i : i + 5] for i in range(0, len(key), 5)),
    "in fives, last first": lambda key: " ".join(key[i : i + 5] for i in range(24, -1, -6)),
    "spaced": " ".join,
    "in lines": "\n".join,
    "letter by letter": lambda key: "".join(f"{c}z" for c in key),
    "soft hyphens": "\u00ad".join,
    "full width": lambda key: "".join(chr(ord(c) + 0xFEE0) for c in key),
    "entities": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "hexadecimal entities": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
    "percent": lambda key: "".join(f"%{ord(c):02x}" for c in key),
    "percent twice": lambda key: "".join(f"%25{ord(c):02x}" for c in key),
    "quoted": lambda key: urllib.parse.quote(key, safe=""),
    "unicode escapes": lambda key: "".join(f"\\u{ord(c):04x}" for c in key),
    "doubled escapes": lambda key: "".join(f"\\\\u{ord(c):04x}" for c in key),
    "byte escapes": lambda key: "".join(f"\\x{ord(c):02x}" for c in key),
    "octal escapes": lambda key: "".join(f"\\{ord(c):03o}" for c in key),
    "codes": lambda key: ",".join(str(ord(c)) for c in key),
    "hexadecimal codes": lambda key: ", ".join(f"0x{ord(c):02X}" for c in key),
    "quoted-printable": lambda key: "".join(f"={ord(c):02X}" for c in key),
    "backslashes": "\\".join,
    "JSON": json.dumps,
    "hexadecimal": lambda key: key.encode().hex(),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a login": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "base32": lambda key: base64.b32encode(key.encode()).decode(),
    "base32 of a login": lambda key: base64.b32encode(f"user:{key}".encode()).decode(),
    "rot13": lambda key: codecs.encode(key, "rot13"),
}

#: Makes an answer to a request from the echo.
Place = Callable[[Request, str], Iterable[bytes]]


def as_header(echo: str) -> bytes:
    return echo.replace("\n", " ").encode()


def in_model(request: Request, echo: str) -> Iterator[bytes]:
    model = json.dumps(echo)
    return respond(f'{{"model": {model}, "results": [{rows(request)}]}}'.encode())


PLACES: dict[str, Place] = {
    "an error page": lambda _, echo: respond(f"Wrong key: {echo}".encode(), status="500 Oops"),
    "a long error page": lambda _, echo: respond(
        f"{'x' * 190} {echo} {'y' * 9000}".encode(), status="401 No"
    ),
    "the status": lambda _, echo: respond(b"{}", status=b"403 " + as_header(echo)),
    "a header": lambda _, echo: respond(
        b"{}", b"X-Key: " + as_header(echo), b"Retry-After: " + as_header(echo), status="429 Wait"
    ),
    "a cookie": lambda _, echo: respond(
        b"{}", b"Set-Cookie: k=" + as_header(echo) + b"; Expires=9", status="500 Oops"
    ),
    "a broken answer": lambda _, echo: respond(f'{{"a": {echo}'.encode()),
    "a broken header": lambda _, echo: [b"HTTP/1.1 200 OK\r\n\x00" + echo.encode() + b"\r\n\r\n"],
    "no status line": lambda _, echo: [echo.encode() + b"\r\n\r\n"],
    "an encoding": lambda _, echo: respond(b"{}", b"Content-Encoding: " + as_header(echo)),
    "a key of an object": lambda _, echo: respond(json.dumps({echo: 1, "results": echo}).encode()),
    "the model": in_model,
}

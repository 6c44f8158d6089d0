"""What in a query may identify a person: addresses, telephone and card numbers, account numbers.

Patterns find forms, not people: a name is not found, and a part number may look like a telephone
number. Somebody has to read what is published.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Final

#: Digits of a telephone number, at least, and at most (ITU-T E.164).
PHONE_DIGITS: Final = (8, 15)
#: Digits of a card number, at least, and at most (ISO/IEC 7812-1).
CARD_DIGITS: Final = (13, 19)
#: Characters of an account number, at least, and at most (ISO 13616).
ACCOUNT_CHARACTERS: Final = (15, 34)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS: Final = re.compile(
    r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}|[\da-f]*:[\da-f:]*:[\da-f]*)(?![\w:]|\.\w)"
)
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,}(?!\d)")
#: Without blanks, or in groups of four.
_IBAN: Final = re.compile(
    r"\b[a-z]{2}\d{2}(?:[a-z0-9]{11,30}|(?: [a-z0-9]{4}){2,7}(?: [a-z0-9]{1,4})?)\b", re.IGNORECASE
)
_PHONE: Final = re.compile(r"(?<![\w.])(?:\+|00|\(?0)\d?[\d()/. -]{6,}\d(?![\w.])")
#: As people write them in North America: area code, three digits, four digits.
_PHONE_BY_AREA: Final = re.compile(
    r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-. ]\d{4}(?![\w-]|\.\w)"
)
_DATE: Final = re.compile(r"(?<!\d)\d{1,2}([./-])\d{1,2}\1\d{4}(?!\d)")
_SOCIAL_SECURITY: Final = re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_WORDS: Final = (
    "key|token|password|passwd|pwd|secret|"
    "passwort|kennwort|mot de passe|contraseña|senha|wachtwoord"
)
_TOKEN: Final = re.compile(rf"(?:{_WORDS})\s*[:=]\s*\S{{6,}}", re.IGNORECASE)


def find_personal_data(text: str) -> tuple[str, ...]:
    """The kinds of personal data that a text seems to hold, sorted; empty = none."""
    return tuple(sorted(kind for kind, is_found in CHECKS.items() if is_found(text)))


def _has_card(text: str) -> bool:
    """A number of 13 to 19 digits with the check digit of Luhn's method (ISO/IEC 7812-1)."""
    return any(
        _passes_luhn(number)
        for match in _CARD.finditer(text)
        for number in _list_starts(match[0])
        if CARD_DIGITS[0] <= sum(map(str.isdigit, number)) <= CARD_DIGITS[1]
    )


def _list_starts(text: str) -> Iterator[str]:
    """The text, and what stands before each of its blanks: a number may be followed by others."""
    parts = text.split(" ")
    yield from (" ".join(parts[:count]) for count in range(len(parts), 0, -1))


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled_digits = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled_digits)) % 10 == 0


def _has_iban(text: str) -> bool:
    """An account number whose check digits hold (ISO 13616: the rest modulo 97 is 1)."""
    least, most = ACCOUNT_CHARACTERS
    return any(
        _has_check_digits(number)
        for match in _IBAN.finditer(text)
        for number in _list_starts(match[0])
        if least <= len(number.replace(" ", "")) <= most
    )


def _has_check_digits(number: str) -> bool:
    characters = number.replace(" ", "")
    turned = characters[4:] + characters[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def _has_ip_address(text: str) -> bool:
    return any(_is_ip_address(match[0]) for match in _ADDRESS.finditer(text.lower()))


def _is_ip_address(text: str) -> bool:
    """Without ``::`` alone and the like, which programs write between names."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(map(str.isdigit, text)) and len(text) > len("::1")


def _has_phone_number(text: str) -> bool:
    least, most = PHONE_DIGITS
    text = _DATE.sub(" ", _IBAN.sub(" ", text))
    numbers = [*_PHONE.finditer(text), *_PHONE_BY_AREA.finditer(text)]
    counts = (sum(map(str.isdigit, match[0])) for match in numbers)
    return any(least <= count <= most for count in counts)


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "email address": lambda text: _EMAIL.search(text) is not None,
    "card number": _has_card,
    "account number": _has_iban,
    "IP address": _has_ip_address,
    "telephone number": _has_phone_number,
    "social security number": lambda text: _SOCIAL_SECURITY.search(text) is not None,
    "password or key": lambda text: _TOKEN.search(text) is not None,
}

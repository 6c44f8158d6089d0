"""What in a query may identify a person: addresses, telephone and card numbers, account numbers.

Patterns find forms, not people: a name is not found, and a part number may look like a telephone
number. Somebody has to read what is published.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

#: Digits of a telephone number, at least, and at most (ITU-T E.164).
PHONE_DIGITS: Final = (8, 15)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS_V4: Final = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")
_PHONE: Final = re.compile(r"(?<![\w.])(?:\+|00|\(?0)\d?[\d()/. -]{6,}\d(?![\w.])")
_SOCIAL_SECURITY: Final = re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_TOKEN: Final = re.compile(r"(?:key|token|password|passwd|secret)\s*[:=]\s*\S{6,}", re.IGNORECASE)


def find_personal_data(text: str) -> tuple[str, ...]:
    """The kinds of personal data that a text seems to hold, sorted; empty = none."""
    return tuple(sorted(kind for kind, is_found in CHECKS.items() if is_found(text)))


def _has_card(text: str) -> bool:
    """A number of 13 to 19 digits with the check digit of Luhn's method (ISO/IEC 7812-1)."""
    return any(_passes_luhn(match[0]) for match in _CARD.finditer(text))


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled_digits = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled_digits)) % 10 == 0


def _has_iban(text: str) -> bool:
    """An account number whose check digits hold (ISO 13616: the rest modulo 97 is 1)."""
    for match in _IBAN.finditer(text):
        number = match[0].replace(" ", "")
        turned = number[4:] + number[:4]
        if int("".join(str(int(character, 36)) for character in turned)) % 97 == 1:
            return True
    return False


def _has_ip_address(text: str) -> bool:
    addresses = _ADDRESS_V4.finditer(text)
    return any(all(int(part) < 256 for part in match[0].split(".")) for match in addresses)


def _has_phone_number(text: str) -> bool:
    least, most = PHONE_DIGITS
    numbers = _PHONE.finditer(_IBAN.sub(" ", text))
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

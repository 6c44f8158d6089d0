"""What a message names, whatever the words between."""

import re


def names_in_order(text: str, *parts: str) -> bool:
    """Whether a text has all parts, one after the other."""
    return re.search(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None

"""Where CONV-03-05 draws the line between correct, ambiguous and incorrect results (BR-016)."""

from __future__ import annotations

from typing import Final

#: From this score on the unit scale a result is correct …
CORRECT_FROM: Final = 0.7
#: … and up to this one incorrect.
INCORRECT_TO: Final = 0.3

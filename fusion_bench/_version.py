"""The version of the package, and of its numbers."""

__version__ = "0.1.0"
#: Raised whenever the same files and the same configuration may give another number.
ENGINE = 3

"""The grades of judges beside those that decide the values."""

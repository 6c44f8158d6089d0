"""Each module holds one ``LOOP`` of ``make torture``."""

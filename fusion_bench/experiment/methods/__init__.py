"""Methods in an experiment: fields, aliases, and the table of names."""

"""What speaks against a number: lists, judges, near-duplicates, ties, unjudged documents, lint."""

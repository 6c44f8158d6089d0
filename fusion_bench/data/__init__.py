"""Records, the one ordering of documents, and runs aligned as read-only arrays."""

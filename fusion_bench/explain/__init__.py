"""Why a document has its score."""

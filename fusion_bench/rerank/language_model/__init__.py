"""What a language model that reranks is asked, and how its answer is read."""

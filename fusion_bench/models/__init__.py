"""Models: rerankers, encoders, retrievers, classifiers; their paid answers are stored."""

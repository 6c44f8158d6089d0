"""CRAG: is a list good enough to answer from, or is a search of the web needed?"""

"""The first rows of each partition, and their numbers."""

"""Interval operators on deltas, one per file."""

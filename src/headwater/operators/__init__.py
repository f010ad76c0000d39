"""Interval operators on deltas, one a file."""

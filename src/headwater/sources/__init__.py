"""Data comes in: what a stream reads from, and how its rows become elements."""

"""Operators that look at one row at a time, and keep nothing of it (or only what never ends)."""

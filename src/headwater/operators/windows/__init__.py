"""Operators that say how long a row stays in view."""

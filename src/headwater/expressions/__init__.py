"""Scalar expressions: typed trees, the functions and aggregates that there are, and what engines compute them with."""

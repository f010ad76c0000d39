"""Compiled numeric kernels: pure functions on arrays, no Python objects."""

"""Benchmarks that ship with the package: `headwater bench …`."""

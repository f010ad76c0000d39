"""Benchmarks, not part of the package that is installed: `bin/headwater bench …` runs them from a checkout."""

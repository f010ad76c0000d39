"""Headwater: continuous queries with exact temporal semantics over unbounded, disordered, revisable streams."""

__version__ = "0.1.0"

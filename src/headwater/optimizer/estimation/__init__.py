"""Estimates of plans: rates, lifetimes, selectivities, state and time, from statistics of the sources (Krämer 22)."""

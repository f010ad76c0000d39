"""Rows that stand: changes that arrive in any order, and what a relation holds now."""

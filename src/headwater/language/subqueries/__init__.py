"""Queries inside of queries, and how they are joined to the rows around them."""

"""The parts of a SELECT above its rows: groups, columns, order, and what becomes of the answer."""

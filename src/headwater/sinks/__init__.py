"""Data goes out: where the answers of a query are delivered."""

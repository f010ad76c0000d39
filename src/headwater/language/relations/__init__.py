"""What stands in FROM: items with their windows, and joins of them."""

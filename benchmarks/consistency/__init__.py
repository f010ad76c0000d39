"""What each level of consistency costs and brings: simulated, over one disordered stream."""

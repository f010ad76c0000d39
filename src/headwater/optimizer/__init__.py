"""Plans made better by laws that keep their snapshots (Krämer chapter 10)."""

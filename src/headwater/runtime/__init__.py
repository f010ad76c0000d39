"""Plans become running graphs of operators."""

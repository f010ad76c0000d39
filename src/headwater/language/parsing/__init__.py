"""How SQL is read: sqlglot's Spark parser with our statements, windows and clauses."""

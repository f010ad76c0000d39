"""Nested JSON: the lines of each order as rows of their own, and what each item brought in the last hour."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM placed (id INT, customer STRUCT<name: STRING, city: STRING>,
                              lines ARRAY<STRUCT<item: STRING, pieces: INT, euro: INT>>, ts TIMESTAMP)
          SOURCE json('orders.jsonl') ORDERED BY ts DISORDER 2 SECONDS
    """)
    line = engine.sql("""
        CREATE STREAM line AS
          SELECT p.id, p.customer.city, l.item, l.pieces * l.euro AS euro
          FROM placed p CROSS JOIN UNNEST(p.lines) AS l
    """)
    turnover = engine.sql("SELECT item, SUM(euro) AS euro FROM line WINDOW(RANGE 1 HOUR) GROUP BY item")
    with engine.held():
        runs = {"line": line.start(), "turnover": turnover.start()}
    engine.run_to_end()
    answer = {name: run.history() for name, run in runs.items()}

for name, rows in answer.items():
    print(name, rows, sep="\n")

"""Each purchase with the city that its customer had at that time; the table is what Debezium tells of a database."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE TABLE customer (id INT PRIMARY KEY, city STRING)
          SOURCE json('customers.jsonl', changes => 'debezium') DISORDER 1 SECOND;
        CREATE STREAM purchase (customer INT, euro INT, ts TIMESTAMP)
          SOURCE csv('purchases.csv') ORDERED BY ts DISORDER 1 SECOND
    """)
    run = engine.sql("""
        SELECT p.customer, p.euro, c.city
        FROM purchase p LEFT JOIN customer c ON p.customer = c.id
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

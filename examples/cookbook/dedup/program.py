"""Each payment once, though the sender repeats what was not confirmed, for up to ten minutes."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM payment (id STRING, euro INT, ts TIMESTAMP)
          SOURCE json('payments.jsonl') ORDERED BY ts DISORDER 5 SECONDS
    """)
    run = engine.sql("""
        SELECT * FROM Istream(SELECT DISTINCT id, euro FROM payment [RANGE 10 MINUTES])
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

"""Rows that come after their time was declared final: what they were, and by how much they missed it."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM reading (sensor STRING, celsius DOUBLE, ts TIMESTAMP)
          SOURCE csv('readings/*.csv', rows_per_tick => 1)
          ORDERED BY ts DISORDER 5 SECONDS LATE ROWS DIVERT INTO reading_late
    """)
    hottest = engine.sql("SELECT sensor, MAX(celsius) AS most FROM reading WINDOW(RANGE 10 SECONDS) GROUP BY sensor")
    missed = engine.sql("SELECT sensor, celsius, ts FROM reading_late")
    with engine.held():
        runs = {"hottest": hottest.start(), "missed": missed.start()}
    engine.run_to_end()
    answer = {name: run.history() for name, run in runs.items()}
    print(engine.progress().lost())  # ['late in reading: 1 by DISORDER 5 SECONDS']

for name, rows in answer.items():
    print(name, rows, sep="\n")

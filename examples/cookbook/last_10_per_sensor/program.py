"""The mean of the last ten readings of each sensor."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM reading (sensor STRING, celsius DOUBLE, ts TIMESTAMP)
          SOURCE csv('readings.csv') ORDERED BY ts DISORDER 2 SECONDS
    """)
    run = engine.sql("""
        SELECT sensor, ROUND(AVG(celsius), 2) AS mean, COUNT(*) AS readings
        FROM reading WINDOW(PARTITION BY sensor ROWS 10)
        GROUP BY sensor
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

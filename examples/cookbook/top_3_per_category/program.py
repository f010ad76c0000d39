"""Per hour and category, the three items with the highest turnover."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM sale (category STRING, item STRING, euro INT, ts TIMESTAMP)
          SOURCE csv('sales.csv') ORDERED BY ts DISORDER 30 SECONDS
    """)
    run = engine.sql("""
        SELECT window_start, category, item, turnover
        FROM (SELECT window_start, category, item, SUM(euro) AS turnover
              FROM TUMBLE(TABLE sale, DESCRIPTOR(ts), INTERVAL 1 HOUR)
              GROUP BY window_start, window_end, category, item)
        QUALIFY ROW_NUMBER() OVER (PARTITION BY category ORDER BY turnover DESC) <= 3
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

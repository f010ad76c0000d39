"""How many visits does each page get per minute?"""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM visit (page STRING, ts TIMESTAMP)
          SOURCE csv('visits.csv') ORDERED BY ts DISORDER 5 SECONDS
    """)
    run = engine.sql("""
        SELECT window_start, page, COUNT(*) AS visits
        FROM TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL 1 MINUTE)
        GROUP BY window_start, window_end, page
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

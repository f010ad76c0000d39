"""JSON whose time is a number of milliseconds since 1970: a computed column is the time."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM click (person STRING, page STRING, ts BIGINT, at AS timestamp_millis(ts))
          SOURCE json('clicks.jsonl') ORDERED BY at DISORDER 2 SECONDS
    """)
    run = engine.sql("""
        SELECT window_start, page, COUNT(*) AS clicks, MAX(at) AS latest
        FROM TUMBLE(TABLE click, DESCRIPTOR(at), INTERVAL 1 MINUTE)
        GROUP BY window_start, window_end, page
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

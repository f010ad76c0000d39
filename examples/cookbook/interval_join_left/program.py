"""Every order once, when its four hours are over: with its shipment, or NULL if there was none."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM placed (id INT, item STRING, ts TIMESTAMP)
          SOURCE csv('orders.csv') ORDERED BY ts DISORDER 1 MINUTE;
        CREATE STREAM shipment (order_id INT, carrier STRING, ts TIMESTAMP)
          SOURCE csv('shipments.csv') ORDERED BY ts DISORDER 1 MINUTE
    """)
    run = engine.sql("""
        SELECT p.id, p.item, s.carrier
        FROM Dstream(placed [RANGE 4 HOURS]) p
        LEFT JOIN shipment s [RANGE 5 HOURS]
          ON s.order_id = p.id AND s.ts BETWEEN p.ts AND p.ts + INTERVAL 4 HOURS
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

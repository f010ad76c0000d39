"""Which orders are shipped within four hours?"""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM placed (id INT, item STRING, ts TIMESTAMP)
          SOURCE csv('orders.csv') ORDERED BY ts DISORDER 1 MINUTE;
        CREATE STREAM shipment (order_id INT, carrier STRING, ts TIMESTAMP)
          SOURCE csv('shipments.csv') ORDERED BY ts DISORDER 1 MINUTE
    """)
    run = engine.sql("""
        SELECT p.id, p.item, s.carrier, unix_seconds(s.ts) - unix_seconds(p.ts) AS seconds
        FROM placed p WINDOW(RANGE 4 HOURS) JOIN shipment s ON s.order_id = p.id
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

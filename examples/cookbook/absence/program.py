"""What should follow and does not: alarms that nobody confirms within five minutes."""

import headwater as hw

with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM alarm (id INT, sensor STRING, ts TIMESTAMP)
          SOURCE csv('alarms.csv') ORDERED BY ts DISORDER 10 SECONDS;
        CREATE STREAM confirmation (alarm INT, who STRING, ts TIMESTAMP)
          SOURCE csv('confirmations.csv') ORDERED BY ts DISORDER 10 SECONDS
    """)
    unconfirmed = engine.sql("""
        SELECT a.id, a.sensor
        FROM Dstream(alarm [RANGE 5 MINUTES]) a
        WHERE NOT EXISTS (SELECT 1 FROM confirmation [RANGE 5 MINUTES] c WHERE c.alarm = a.id)
    """)
    calm = engine.sql("SELECT * FROM Dstream(SELECT DISTINCT sensor FROM alarm [RANGE 10 MINUTES])")
    with engine.held():  # both begin with the first row
        runs = {"unconfirmed": unconfirmed.start(), "calm": calm.start()}
    engine.run_to_end()
    answer = {name: run.history() for name, run in runs.items()}

for name, rows in answer.items():
    print(name, rows, sep="\n")

"""On a cluster: another master, and a checkpoint where all machines see it. The package travels by itself."""

import os

import headwater as hw

master = os.environ["MASTER"]  # spark://host:7077

with hw.connect(master, checkpoint="shared/checkpoint", shards=4) as engine:
    engine.sql("""
        CREATE STREAM visit (page STRING, ts TIMESTAMP)
          SOURCE csv('visits/visits.csv') ORDERED BY ts DISORDER 5 SECONDS
    """)
    run = engine.sql("SELECT page, COUNT(*) AS visits FROM visit WINDOW(RANGE 1 MINUTE) GROUP BY page").start()
    engine.run_to_end()
    answer = run.history()

print(answer)

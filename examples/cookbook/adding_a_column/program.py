"""Bids come with a bidder from now on: the stream gets a column, and the queries of the checkpoint go on."""

import shutil

import headwater as hw

TOTALS = "SELECT item, SUM(price) AS total FROM bid WINDOW(RANGE 10 MINUTES) GROUP BY item"
answer = {"totals": [], "bidders": []}


def collect(name):
    return hw.sinks.foreach(lambda table, tick: answer[name].extend(table.to_pylist()))


with hw.connect(runner="inprocess", checkpoint="kept") as engine:
    engine.sql("""
        CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP)
          SOURCE json('inbox') ORDERED BY ts DISORDER 10 SECONDS
    """)
    engine.sql(TOTALS, name="totals").start(collect("totals"))
    engine.run_to_end(end_streams=False)

shutil.copy("later/2.jsonl", "inbox")

with hw.connect(runner="inprocess", checkpoint="kept") as engine:
    engine.sql("""
        CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP, bidder STRING)
          SOURCE json('inbox') ORDERED BY ts DISORDER 10 SECONDS
    """)
    with engine.held():
        engine.sql(TOTALS, name="totals").start(collect("totals"))  # goes on with its state
        engine.sql("SELECT bidder, price FROM bid WHERE bidder IS NOT NULL", name="bidders").start(collect("bidders"))
    engine.run_to_end(end_streams=False)

for name, rows in answer.items():
    print(name, *rows, sep="\n")

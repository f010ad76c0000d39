"""A query becomes another one: begun anew under its name, or beside the old one under another name."""

import shutil

import headwater as hw

BID = """
    CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP)
      SOURCE json('inbox') ORDERED BY ts DISORDER 10 SECONDS
"""
TOTALS = "SELECT item, SUM(price) AS total FROM bid WINDOW(RANGE {}) GROUP BY item"
answer = {"totals": [], "dear": [], "cheap": []}


def collect(name):
    return hw.sinks.foreach(lambda table, tick: answer[name].extend(table.to_pylist()))


with hw.connect(runner="inprocess", checkpoint="kept") as engine:
    engine.sql(BID)
    with engine.held():
        engine.sql(TOTALS.format("10 MINUTES"), name="totals").start(collect("totals"))
        engine.sql("SELECT item, price FROM bid WHERE price >= 20", name="dear").start(collect("dear"))
    engine.run_to_end(end_streams=False)

shutil.copy("later/2.jsonl", "inbox")

with hw.connect(runner="inprocess", checkpoint="kept") as engine:
    engine.sql(BID)
    changed = engine.sql(TOTALS.format("5 MINUTES"), name="totals")
    try:
        changed.start(collect("totals"))
    except hw.HeadwaterError as problem:
        print(problem)  # QUERY_CHANGED: … Where it had "Window RANGE …", it has "Window RANGE …" now.
    engine.drop("totals")  # begin it anew
    engine.drop("dear")  # it is no longer wanted
    with engine.held():
        changed.start(collect("totals"))
        engine.sql("SELECT item, price FROM bid WHERE price < 20", name="cheap").start(collect("cheap"))
    engine.run_to_end(end_streams=False)

for name, rows in answer.items():
    print(name, *rows, sep="\n")

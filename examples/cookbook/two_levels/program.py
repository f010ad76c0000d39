"""The highest bid of each item in the last minute: once it is final, and at once with repairs."""

import headwater as hw

BEST = "SELECT item, MAX(price) AS best FROM bid WINDOW(RANGE 1 MINUTE) GROUP BY item"
answer = {"sure": [], "soon": []}


def collect(name):
    """A sink that keeps what it gets, as it gets it."""
    return hw.sinks.foreach(lambda table, tick: answer[name].extend(table.to_pylist()))


with hw.connect(runner="inprocess") as engine:
    engine.sql("""
        CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP)
          SOURCE csv('bids/*.csv', rows_per_tick => 1) ORDERED BY ts DISORDER 30 SECONDS
    """)
    with engine.held():  # both begin with the first row, and share what they have in common
        engine.sql(BEST).start(collect("sure"))
        engine.sql(f"{BEST} CONSISTENCY MIDDLE").start(collect("soon"))
    engine.run_to_end()

for name, rows in answer.items():
    print(name, *rows, sep="\n")

"""Functions of your own, scalar and aggregate, given to the engine as they are: from a notebook, say."""

import pyarrow.compute as pc

import headwater as hw


class Spread:
    """The state is (least, greatest)."""

    def init(self, x):
        return x, x

    def merge(self, state, x):
        return min(state[0], x), max(state[1], x)

    def eval(self, state):
        return state[1] - state[0]


minutes_per_hour = 60.0

with hw.connect(runner="inprocess") as engine:
    engine.create_function(
        "speed",
        lambda km, minutes: pc.divide(pc.multiply(km, minutes_per_hour), minutes),
        {"km": "DOUBLE", "minutes": "DOUBLE"},
        "DOUBLE",
    )
    engine.create_function("spread", Spread, {"x": "DOUBLE"}, "DOUBLE")
    engine.sql("""
        CREATE STREAM trip (car STRING, km DOUBLE, minutes DOUBLE, ts TIMESTAMP)
          SOURCE csv('trips.csv') ORDERED BY ts DISORDER 1 MINUTE
    """)
    run = engine.sql("""
        SELECT car, MAX(speed(km, minutes)) AS fastest, spread(speed(km, minutes)) AS spread
        FROM trip WINDOW(RANGE 1 HOUR) GROUP BY car
    """).start()
    engine.run_to_end()
    answer = run.history()

print(answer)

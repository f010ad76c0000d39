"""What query.sql calls: a scalar function of whole Arrow arrays, and an aggregate of three steps."""

import pyarrow.compute as pc


def speed(km, minutes):
    return pc.divide(pc.multiply(km, 60.0), minutes)


class Spread:
    def init(self, x):
        return x, x

    def merge(self, state, x):
        return min(state[0], x), max(state[1], x)

    def eval(self, state):
        return state[1] - state[0]

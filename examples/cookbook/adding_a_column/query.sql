-- Bids come with a bidder from now on: the stream gets a column, and the queries of the checkpoint go on.
--   headwater run before.sql --once --runner inprocess --checkpoint kept
--   cp later/2.jsonl inbox
--   headwater run query.sql --once --runner inprocess --checkpoint kept

CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP, bidder STRING)
  SOURCE json('inbox') ORDERED BY ts DISORDER 10 SECONDS;

CREATE STREAM totals AS SELECT item, SUM(price) AS total FROM bid WINDOW(RANGE 10 MINUTES) GROUP BY item;

-- A new query of the same checkpoint answers from what comes after its start.
CREATE STREAM bidders AS SELECT bidder, price FROM bid WHERE bidder IS NOT NULL;

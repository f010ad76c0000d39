-- A query becomes another one: begun anew under its name, or beside the old one under another name.
--   headwater run before.sql --once --runner inprocess --checkpoint kept
--   cp later/2.jsonl inbox
--   headwater run query.sql --once --runner inprocess --checkpoint kept --restart-query totals --drop dear
-- Without --restart-query and --drop nothing runs: a query must not change, or be forgotten, by a slip.

CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP)
  SOURCE json('inbox') ORDERED BY ts DISORDER 10 SECONDS;

CREATE STREAM totals AS SELECT item, SUM(price) AS total FROM bid WINDOW(RANGE 5 MINUTES) GROUP BY item;
CREATE STREAM cheap AS SELECT item, price FROM bid WHERE price < 20;

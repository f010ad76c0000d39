-- The highest bid of each item in the last minute: once it is final, and at once with repairs.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM bid (item STRING, price INT, ts TIMESTAMP)
  SOURCE csv('bids/*.csv', rows_per_tick => 1) ORDERED BY ts DISORDER 30 SECONDS;

CREATE STREAM sure AS SELECT item, MAX(price) AS best FROM bid WINDOW(RANGE 1 MINUTE) GROUP BY item;
CREATE STREAM soon AS SELECT item, MAX(price) AS best FROM bid WINDOW(RANGE 1 MINUTE) GROUP BY item CONSISTENCY MIDDLE;

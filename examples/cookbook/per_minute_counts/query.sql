-- How many visits does each page get per minute?
--   headwater run query.sql --once --runner inprocess

CREATE STREAM visit (page STRING, ts TIMESTAMP)
  SOURCE csv('visits.csv') ORDERED BY ts DISORDER 5 SECONDS;

SELECT window_start, page, COUNT(*) AS visits
FROM TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL 1 MINUTE)
GROUP BY window_start, window_end, page;

-- Visits of each person: clicks that are less than five minutes apart.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM click (person STRING, page STRING, ts TIMESTAMP)
  SOURCE csv('clicks.csv') ORDERED BY ts DISORDER 10 SECONDS;

SELECT person, window_start, window_end, COUNT(*) AS clicks
FROM SESSION(TABLE click PARTITION BY person, DESCRIPTOR(ts), INTERVAL 5 MINUTES)
GROUP BY person, window_start, window_end;

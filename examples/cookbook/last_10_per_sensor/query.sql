-- The mean of the last ten readings of each sensor.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM reading (sensor STRING, celsius DOUBLE, ts TIMESTAMP)
  SOURCE csv('readings.csv') ORDERED BY ts DISORDER 2 SECONDS;

SELECT sensor, ROUND(AVG(celsius), 2) AS mean, COUNT(*) AS readings
FROM reading WINDOW(PARTITION BY sensor ROWS 10)
GROUP BY sensor;

-- Rows that come after their time was declared final: what they were, and by how much they missed it.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM reading (sensor STRING, celsius DOUBLE, ts TIMESTAMP)
  SOURCE csv('readings/*.csv', rows_per_tick => 1)
  ORDERED BY ts DISORDER 5 SECONDS LATE ROWS DIVERT INTO reading_late;

CREATE STREAM hottest AS SELECT sensor, MAX(celsius) AS most FROM reading WINDOW(RANGE 10 SECONDS) GROUP BY sensor;

CREATE STREAM missed AS SELECT sensor, celsius, ts FROM reading_late;

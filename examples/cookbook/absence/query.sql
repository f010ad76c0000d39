-- What should follow and does not: alarms that nobody confirms within five minutes.
--   headwater run query.sql --once --runner inprocess
-- To be told as soon as the five minutes are over though nothing else comes: ORDERED BY ts ALONG WALL CLOCK WITHIN 2 SECONDS.

CREATE STREAM alarm (id INT, sensor STRING, ts TIMESTAMP)
  SOURCE csv('alarms.csv') ORDERED BY ts DISORDER 10 SECONDS;
CREATE STREAM confirmation (alarm INT, who STRING, ts TIMESTAMP)
  SOURCE csv('confirmations.csv') ORDERED BY ts DISORDER 10 SECONDS;

-- An alarm leaves its window after five minutes. Was there a confirmation in the meantime?
CREATE STREAM unconfirmed AS
  SELECT a.id, a.sensor
  FROM Dstream(alarm [RANGE 5 MINUTES]) a
  WHERE NOT EXISTS (SELECT 1 FROM confirmation [RANGE 5 MINUTES] c WHERE c.alarm = a.id);

-- Silence: a sensor that had an alarm, and no other one for ten minutes.
CREATE STREAM calm AS
  SELECT * FROM Dstream(SELECT DISTINCT sensor FROM alarm [RANGE 10 MINUTES]);

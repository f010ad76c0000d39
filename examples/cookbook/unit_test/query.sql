-- A query with a unit test, program.py. The same rows as a recording:
--   headwater replay query.sql --input recording.jsonl --history

CREATE STREAM visit (page STRING, ts TIMESTAMP)
  SOURCE csv('visits.csv') ORDERED BY ts DISORDER 5 SECONDS;

SELECT page, COUNT(*) AS visits FROM visit WINDOW(RANGE 5 MINUTES) GROUP BY page;

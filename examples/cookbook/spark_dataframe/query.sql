-- A streaming DataFrame of Spark as a stream: see program.py. The same over the files themselves:
--   headwater run query.sql --once --runner inprocess

CREATE STREAM visit (page STRING, ts TIMESTAMP)
  SOURCE csv('visits/*.csv') ORDERED BY ts DISORDER 5 SECONDS;

SELECT page, COUNT(*) AS visits FROM visit WINDOW(RANGE 1 MINUTE) GROUP BY page;

-- An answer in other tools: program.py has it as Arrow, pandas, polars and Spark; the command line writes files.
--   headwater run query.sql --once --runner inprocess
--   headwater run query.sql --once --runner inprocess --output answers --format parquet

CREATE STREAM visit (page STRING, ts TIMESTAMP)
  SOURCE csv('visits.csv') ORDERED BY ts DISORDER 5 SECONDS;

SELECT window_start, page, COUNT(*) AS visits
FROM TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL 1 MINUTE)
GROUP BY window_start, window_end, page;

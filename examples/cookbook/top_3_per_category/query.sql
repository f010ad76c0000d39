-- Per hour and category, the three items with the highest turnover.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM sale (category STRING, item STRING, euro INT, ts TIMESTAMP)
  SOURCE csv('sales.csv') ORDERED BY ts DISORDER 30 SECONDS;

SELECT window_start, category, item, turnover
FROM (SELECT window_start, category, item, SUM(euro) AS turnover
      FROM TUMBLE(TABLE sale, DESCRIPTOR(ts), INTERVAL 1 HOUR)
      GROUP BY window_start, window_end, category, item)
QUALIFY ROW_NUMBER() OVER (PARTITION BY category ORDER BY turnover DESC) <= 3;

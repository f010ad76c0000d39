-- JSON whose time is a number of milliseconds since 1970: a computed column is the time.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM click (person STRING, page STRING, ts BIGINT, at AS timestamp_millis(ts))
  SOURCE json('clicks.jsonl') ORDERED BY at DISORDER 2 SECONDS;

SELECT window_start, page, COUNT(*) AS clicks, MAX(at) AS latest
FROM TUMBLE(TABLE click, DESCRIPTOR(at), INTERVAL 1 MINUTE)
GROUP BY window_start, window_end, page;

-- Each payment once, though the sender repeats what was not confirmed, for up to ten minutes.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM payment (id STRING, euro INT, ts TIMESTAMP)
  SOURCE json('payments.jsonl') ORDERED BY ts DISORDER 5 SECONDS;

-- A payment that is there already is nothing new. Repetitions differ in ts, so that is left out; _start is that of the first.
SELECT * FROM Istream(SELECT DISTINCT id, euro FROM payment [RANGE 10 MINUTES]);

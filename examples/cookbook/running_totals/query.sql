-- Each payment with the balance of its account so far, what was paid in the hour before it, and the payment before it.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM payment (account STRING, euro INT, ts TIMESTAMP)
  SOURCE csv('payments.csv') ORDERED BY ts DISORDER 10 MINUTES;

SELECT account, euro, ts,
  SUM(euro) OVER (PARTITION BY account ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS balance,
  SUM(euro) OVER (PARTITION BY account ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS paid,
  LAG(euro) OVER (PARTITION BY account ORDER BY ts) AS before
FROM payment;

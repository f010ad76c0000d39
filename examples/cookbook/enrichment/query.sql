-- Each purchase with the city that its customer had at that time; the table is what Debezium tells of a database.
--   headwater run query.sql --once --runner inprocess

CREATE TABLE customer (id INT PRIMARY KEY, city STRING)
  SOURCE json('customers.jsonl', changes => 'debezium') DISORDER 1 SECOND;
CREATE STREAM purchase (customer INT, euro INT, ts TIMESTAMP)
  SOURCE csv('purchases.csv') ORDERED BY ts DISORDER 1 SECOND;

-- No window: a purchase is valid at its instant, and meets the row of its customer that is valid then.
SELECT p.customer, p.euro, c.city
FROM purchase p LEFT JOIN customer c ON p.customer = c.id;

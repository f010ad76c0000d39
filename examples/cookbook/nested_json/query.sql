-- Nested JSON: the lines of each order as rows of their own, and what each item brought in the last hour.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM placed (id INT, customer STRUCT<name: STRING, city: STRING>,
                      lines ARRAY<STRUCT<item: STRING, pieces: INT, euro: INT>>, ts TIMESTAMP)
  SOURCE json('orders.jsonl') ORDERED BY ts DISORDER 2 SECONDS;

CREATE STREAM line AS
  SELECT p.id, p.customer.city, l.item, l.pieces * l.euro AS euro
  FROM placed p CROSS JOIN UNNEST(p.lines) AS l;

CREATE STREAM turnover AS
  SELECT item, SUM(euro) AS euro FROM line WINDOW(RANGE 1 HOUR) GROUP BY item;

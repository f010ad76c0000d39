-- Every order once, when its four hours are over: with its shipment, or NULL if there was none.
--   headwater run query.sql --once --runner inprocess

CREATE STREAM placed (id INT, item STRING, ts TIMESTAMP)
  SOURCE csv('orders.csv') ORDERED BY ts DISORDER 1 MINUTE;
CREATE STREAM shipment (order_id INT, carrier STRING, ts TIMESTAMP)
  SOURCE csv('shipments.csv') ORDERED BY ts DISORDER 1 MINUTE;

-- Dstream: the instant at which an order leaves its window. Shipments are kept a little longer than that, so that the
-- condition alone says what is in time; both its ends belong to it, as in Flink's and Spark's interval joins.
SELECT p.id, p.item, s.carrier
FROM Dstream(placed [RANGE 4 HOURS]) p
LEFT JOIN shipment s [RANGE 5 HOURS]
  ON s.order_id = p.id AND s.ts BETWEEN p.ts AND p.ts + INTERVAL 4 HOURS;

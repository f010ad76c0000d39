-- Which orders are shipped within four hours?
--   headwater run query.sql --once --runner inprocess

CREATE STREAM placed (id INT, item STRING, ts TIMESTAMP)
  SOURCE csv('orders.csv') ORDERED BY ts DISORDER 1 MINUTE;
CREATE STREAM shipment (order_id INT, carrier STRING, ts TIMESTAMP)
  SOURCE csv('shipments.csv') ORDERED BY ts DISORDER 1 MINUTE;

-- An order is valid for four hours: [ts, ts + 4 hours). A shipment meets it if it comes meanwhile.
SELECT p.id, p.item, s.carrier, unix_seconds(s.ts) - unix_seconds(p.ts) AS seconds
FROM placed p WINDOW(RANGE 4 HOURS) JOIN shipment s ON s.order_id = p.id;

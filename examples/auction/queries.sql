-- The auction queries of Krämer's thesis over the small data set in events.jsonl; an instant is a minute.
--   headwater replay examples/auction/queries.sql --input examples/auction/events.jsonl --history

CREATE STREAM open_auction (item_id INT, seller_id STRING, start_price DOUBLE);
CREATE STREAM bid (item_id INT, bid_price DOUBLE, bidder_id STRING);
CREATE STREAM closed_auction (item_id INT);
CREATE STREAM person (id STRING, name STRING);      -- a relation: who is registered is valid until further notice

-- Q2: bids on some items.
CREATE STREAM selection AS
  SELECT bid.*
  FROM bid
  WHERE item_id = 1007 OR item_id = 1020 OR item_id = 2001 OR item_id = 2019 OR item_id = 1087;

-- Q3: auctions closed within 5 hours of their opening.
CREATE STREAM short_auctions AS
  SELECT open_auction.*
  FROM open_auction o WINDOW(RANGE 300),
       closed_auction c
  WHERE o.item_id = c.item_id;

-- Q4: the highest bid of the last 10 minutes.
CREATE STREAM highest_bid AS
  SELECT item_id, bid_price
  FROM bid WINDOW(RANGE 10)
  WHERE bid_price = (SELECT MAX(bid_price)
                     FROM bid WINDOW(RANGE 10));

-- Q5: the price at which an item is sold, an auction lasting two days at most.
CREATE STREAM current_price AS
  SELECT p.item_id, p.price, o.seller_id AS seller_id
  FROM ((SELECT item_id, bid_price AS price FROM bid WINDOW(RANGE 2880))
        UNION ALL
        (SELECT item_id, start_price AS price FROM open_auction WINDOW(RANGE 2880))) p,
       closed_auction c,
       open_auction o WINDOW(RANGE 2880)
  WHERE p.item_id = c.item_id AND c.item_id = o.item_id;

CREATE STREAM closing_price AS
  SELECT item_id, seller_id, MAX(p.price) AS price
  FROM current_price p
  GROUP BY p.item_id, p.seller_id;

-- Q5 once more, grouped before the second join (the other plan of figure 10.2).
CREATE STREAM closing_price_early AS
  SELECT g.item_id, o.seller_id, g.price
  FROM (SELECT p.item_id AS item_id, MAX(p.price) AS price
        FROM ((SELECT item_id, bid_price AS price FROM bid WINDOW(RANGE 2880))
              UNION ALL
              (SELECT item_id, start_price AS price FROM open_auction WINDOW(RANGE 2880))) p,
             closed_auction c
        WHERE p.item_id = c.item_id
        GROUP BY p.item_id) g,
       open_auction o WINDOW(RANGE 2880)
  WHERE g.item_id = o.item_id;

-- Q6: the items with the most bids of the last hour.
CREATE STREAM hot_item AS
  SELECT item_id
  FROM (SELECT b1.item_id AS item_id, COUNT(*) AS num
        FROM bid [RANGE 60] b1
        GROUP BY b1.item_id)
  WHERE num >= ALL (SELECT COUNT(*)
                    FROM bid [RANGE 60] b2
                    GROUP BY b2.item_id);

-- The average price of a seller's last ten items.
CREATE STREAM average_selling_price AS
  SELECT seller_id, AVG(price) AS price
  FROM closing_price WINDOW(PARTITION BY seller_id ROWS 10)
  GROUP BY seller_id;

-- Every 10 minutes the highest bid of the last 10 minutes.
CREATE STREAM highest_bid_tumbling AS
  SELECT item_id, bid_price
  FROM bid WINDOW(RANGE 10 SLIDE 10)
  WHERE bid_price = (SELECT MAX(bid_price)
                     FROM bid WINDOW(RANGE 10 SLIDE 10));

-- Sellers whose registration is at most 12 hours old when they open an auction.
CREATE STREAM new_person AS
  SELECT p.id, p.name
  FROM Istream(person) p;

CREATE STREAM new_users AS
  SELECT DISTINCT p.id, p.name
  FROM new_person WINDOW(RANGE 720) p, open_auction o
  WHERE p.id = o.seller_id;

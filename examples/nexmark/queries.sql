-- The queries of `headwater demo` over a minute of events, all there at once:
--
--     headwater run queries.sql --output answers
--
-- An auction house (NEXMark): people sign up, open auctions and bid. One event in ten is delayed, by up to 2.1 seconds. Streams
-- wait 2 seconds for them: what comes even later is kept apart, in bid_late and so on.

CREATE STREAM person (id BIGINT, name STRING, city STRING, ts TIMESTAMP)
  SOURCE nexmark('person', rate => 5000, disorder => '2.1 seconds', events => 300000, paced => false)
  ORDERED BY ts DISORDER 2 SECONDS;

CREATE STREAM auction (id BIGINT, item STRING, seller BIGINT, category BIGINT, reserve BIGINT, ts TIMESTAMP)
  SOURCE nexmark('auction', rate => 5000, disorder => '2.1 seconds', events => 300000, paced => false)
  ORDERED BY ts DISORDER 2 SECONDS;

CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, ts TIMESTAMP)
  SOURCE nexmark('bid', rate => 5000, disorder => '2.1 seconds', events => 300000, paced => false)
  ORDERED BY ts DISORDER 2 SECONDS;

-- A sliding aggregate: how each auction did in the last 5 seconds, every second.
CREATE STREAM activity AS
  SELECT auction, COUNT(*) AS bids, CAST(AVG(price) AS BIGINT) AS average, MAX(price) AS highest
  FROM bid WINDOW(RANGE 5 SECONDS SLIDE 1 SECOND)
  GROUP BY auction;

-- Top-k: the hottest items among them.
CREATE STREAM hottest AS
  SELECT auction, bids, highest
  FROM activity
  ORDER BY bids DESC, auction
  LIMIT 5;

-- A join of windows: bids that reach the reserve of an auction that was opened in the last 20 seconds.
CREATE STREAM sold AS
  SELECT a.item, a.category, a.reserve, b.price
  FROM bid b WINDOW(RANGE 1 SECOND), auction a WINDOW(RANGE 20 SECONDS)
  WHERE b.auction = a.id AND b.price >= a.reserve;

-- DISTINCT: how many people have bid through each channel in the last 5 seconds.
CREATE STREAM bidders AS
  SELECT channel, COUNT(*) AS people
  FROM (SELECT DISTINCT channel, bidder FROM bid WINDOW(RANGE 5 SECONDS SLIDE 1 SECOND))
  GROUP BY channel;

-- EXCEPT: auctions that were opened in the last 3 seconds and have no bid.
CREATE STREAM ignored AS
  SELECT id AS auction FROM auction WINDOW(RANGE 3 SECONDS)
  EXCEPT
  SELECT auction FROM bid WINDOW(RANGE 3 SECONDS);

-- A join of new people with the auctions that they open in their first 10 seconds.
CREATE STREAM newcomers AS
  SELECT p.name, p.city, a.item
  FROM person p WINDOW(RANGE 10 SECONDS), auction a WINDOW(RANGE 1 SECOND)
  WHERE p.id = a.seller;

-- A window of rows: the last 10 auctions of each seller. A seller's average stays open until the next auction comes, so it is
-- shown before it is final.
CREATE STREAM sellers AS
  SELECT seller, COUNT(*) AS auctions, CAST(AVG(reserve) AS BIGINT) AS average_reserve
  FROM auction WINDOW(PARTITION BY seller ROWS 10)
  GROUP BY seller
  CONSISTENCY MIDDLE;

-- Answered at once, and repaired when a bid comes late: no waiting for what is final.
CREATE STREAM channels AS
  SELECT channel, COUNT(*) AS bids, SUM(price) AS volume
  FROM bid WINDOW(RANGE 5 SECONDS SLIDE 1 SECOND)
  GROUP BY channel
  CONSISTENCY MIDDLE;

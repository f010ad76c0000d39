-- Functions of your own. Run from the root of the checkout:
--   bin/headwater replay examples/functions/queries.sql --input examples/functions/events.jsonl --history

CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT);

CREATE FUNCTION DolToEuro(dollars DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'money:dol_to_euro';
CREATE AGGREGATE FUNCTION geo_mean(price DOUBLE) RETURNS DOUBLE AS 'money:GeometricMean';
CREATE AGGREGATE FUNCTION spread(price DOUBLE) RETURNS DOUBLE AS 'money:spread';

-- Q1, Currency Conversion (Krämer, Example 7.2)
CREATE STREAM Euros AS
  SELECT itemID, DolToEuro(bid_price) AS euros, bidderID
  FROM Bid;

CREATE STREAM Typical AS
  SELECT itemID, geo_mean(bid_price) AS typical, spread(bid_price) AS spread
  FROM Bid WINDOW(RANGE 10)
  GROUP BY itemID;

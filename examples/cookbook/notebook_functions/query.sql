-- Functions of your own, scalar and aggregate: here from the module beside the script, in program.py as they are.
--   headwater run query.sql --once --runner inprocess

CREATE FUNCTION speed(km DOUBLE, minutes DOUBLE) RETURNS DOUBLE AS 'functions:speed';
CREATE AGGREGATE FUNCTION spread(x DOUBLE) RETURNS DOUBLE AS 'functions:Spread';

CREATE STREAM trip (car STRING, km DOUBLE, minutes DOUBLE, ts TIMESTAMP)
  SOURCE csv('trips.csv') ORDERED BY ts DISORDER 1 MINUTE;

SELECT car, MAX(speed(km, minutes)) AS fastest, spread(speed(km, minutes)) AS spread
FROM trip WINDOW(RANGE 1 HOUR) GROUP BY car;

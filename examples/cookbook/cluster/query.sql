-- On a cluster: the same script, another master. The checkpoint and the input are where all machines see them.
--   headwater run query.sql --once --master $MASTER --checkpoint shared/checkpoint

CREATE STREAM visit (page STRING, ts TIMESTAMP)
  SOURCE csv('visits/visits.csv') ORDERED BY ts DISORDER 5 SECONDS;

SELECT page, COUNT(*) AS visits FROM visit WINDOW(RANGE 1 MINUTE) GROUP BY page;

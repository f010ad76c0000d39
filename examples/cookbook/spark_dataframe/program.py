"""Any streaming DataFrame of Spark is a stream: Kafka, Delta, a table, or what was computed of them."""

from pyspark.sql import SparkSession

import headwater as hw

spark = SparkSession.builder.master("local[2]").getOrCreate()
visits = (
    spark.readStream.schema("page STRING, ts TIMESTAMP_NTZ")
    .option("header", True)
    .csv("visits")
    .where("page IS NOT NULL")
)

with hw.connect(spark=spark) as engine:
    engine.register("visit", visits, time="ts", disorder="5 seconds")
    run = engine.sql("SELECT page, COUNT(*) AS visits FROM visit WINDOW(RANGE 1 MINUTE) GROUP BY page").start()
    engine.run_to_end()
    answer = run.history()

print(answer)
spark.stop()

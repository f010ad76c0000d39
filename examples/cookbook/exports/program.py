"""An answer in other tools: Arrow, pandas, polars, Spark, and whatever reads Arrow."""

import duckdb
import polars as pl

import headwater as hw

with hw.connect() as engine:  # Spark on this machine, for to_spark(); the others need none
    engine.sql("""
        CREATE STREAM visit (page STRING, ts TIMESTAMP)
          SOURCE csv('visits.csv') ORDERED BY ts DISORDER 5 SECONDS
    """)
    run = engine.sql("""
        SELECT window_start, page, COUNT(*) AS visits
        FROM TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL 1 MINUTE)
        GROUP BY window_start, window_end, page
    """).start()
    engine.run_to_end()
    answer = run.history()

    table = answer.to_arrow()  # without a copy
    pandas = answer.to_pandas().groupby("page")["visits"].sum()
    polars = answer.to_polars().group_by("page").agg(pl.col("visits").sum())
    frame = answer.to_spark().groupBy("page").agg({"visits": "sum"})
    found = duckdb.sql("SELECT page, SUM(visits) FROM answer GROUP BY page")  # whatever reads Arrow
    plain = answer.rows()  # dictionaries

    totals = [dict(pandas), dict(polars.iter_rows()), dict(map(tuple, frame.collect())), dict(found.fetchall())]
    print(totals[0])
    assert table.num_rows == len(plain) == 5
    assert all(total == {"home": 4, "cart": 2} for total in totals)

"""How soon answers are final: heartbeats against the watermarks of Spark and Flink, on a virtual clock."""

"""DruidIngestion: batch, SQL and streaming ingestion, submitted to Apache Druid and followed."""

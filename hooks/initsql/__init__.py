"""PostgresCluster.spec.databaseInitSQL: SQL from a ConfigMap, run once on the primary."""

"""PostgreSQLInstance: a shared server that is checked, and holds our ownership registry."""

"""PostgreSQLTenant: a database, an owner login, extensions, a credential and its projection."""

"""Metacontroller hooks that turn custom resources into databases, credentials and jobs."""

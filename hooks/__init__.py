"""Metacontroller hooks that turn custom resources into databases, credentials and jobs."""

__version__ = "0.1.0"

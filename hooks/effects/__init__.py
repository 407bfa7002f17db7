"""The only code that talks to anything: ports, and one adapter for each system."""

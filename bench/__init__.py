"""Measurements, side by side with bare calls: `make bench`."""

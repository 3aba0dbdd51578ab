"""Clients that fail and lie."""

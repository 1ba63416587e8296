"""Connections to other crawlers and to browsers; none of them imports another."""

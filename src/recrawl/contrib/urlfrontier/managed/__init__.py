"""Managed crawls: the engine decides, and what clients put are observations or wait to become pages."""

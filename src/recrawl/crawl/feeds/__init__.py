"""Feeds as pages: how often to poll so that no item is missed."""

"""Simulations in which change rates are unknown at first."""

"""Estimators that take one outcome at a time."""

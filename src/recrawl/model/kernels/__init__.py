"""Compiled formulas of the model."""

"""All naive twins in one place; they import nothing from the package."""

from naive_value import fresh_time, gamma_p, interval, inverse, inverse_of, value, value_mp, value_sources

__all__ = [
    "fresh_time",
    "gamma_p",
    "interval",
    "inverse",
    "inverse_of",
    "value",
    "value_mp",
    "value_sources",
]

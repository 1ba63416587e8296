"""A synthetic shop: offers, prices, clicks."""

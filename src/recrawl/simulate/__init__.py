"""Populations of pages to plan for; worlds and runs follow."""

from recrawl.simulate.population import bing_like

__all__ = ["bing_like"]

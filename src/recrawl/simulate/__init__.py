"""Worlds and recorded traces, the policies that compete on them, and runs that judge how fresh they keep copies."""

from recrawl.simulate.policies import contender
from recrawl.simulate.population import bing_like
from recrawl.simulate.run import Contender, simulate
from recrawl.simulate.tally import Run
from recrawl.simulate.trace import Signals, Trace

__all__ = ["Contender", "Run", "Signals", "Trace", "bing_like", "contender", "simulate"]

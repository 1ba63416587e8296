"""Worlds and recorded traces, the policies that compete on them, and runs that judge how fresh they keep copies."""

from recrawl.simulate.bing_files import bing_chunks, read_bing
from recrawl.simulate.policies import contender
from recrawl.simulate.population import bing_like, bing_signals, uniform_pages
from recrawl.simulate.run import Contender, simulate
from recrawl.simulate.tally import Run
from recrawl.simulate.trace import Signals, Trace
from recrawl.simulate.trace_files import write_trace
from recrawl.simulate.traces import read_trace
from recrawl.simulate.worlds import World, world, world_names

__all__ = [
    "Contender",
    "Run",
    "Signals",
    "Trace",
    "World",
    "bing_chunks",
    "bing_like",
    "bing_signals",
    "contender",
    "read_bing",
    "read_trace",
    "simulate",
    "uniform_pages",
    "world",
    "world_names",
    "write_trace",
]

"""Worlds and recorded traces, the policies that compete on them, and runs that judge how fresh they keep copies."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.simulate.run.policies import contender as contender
    from recrawl.simulate.run.run import Contender as Contender
    from recrawl.simulate.run.run import simulate as simulate
    from recrawl.simulate.tally import Run as Run
    from recrawl.simulate.trace import Past as Past
    from recrawl.simulate.trace import Signals as Signals
    from recrawl.simulate.trace import Trace as Trace
    from recrawl.simulate.traces.bing import bing_chunks as bing_chunks
    from recrawl.simulate.traces.bing import read_bing as read_bing
    from recrawl.simulate.traces.control import poisson_control as poisson_control
    from recrawl.simulate.traces.files import write_trace as write_trace
    from recrawl.simulate.traces.recorded import read_trace as read_trace
    from recrawl.simulate.worlds.population import bing_like as bing_like
    from recrawl.simulate.worlds.population import bing_signals as bing_signals
    from recrawl.simulate.worlds.population import uniform_pages as uniform_pages
    from recrawl.simulate.worlds.worlds import World as World
    from recrawl.simulate.worlds.worlds import world as world
    from recrawl.simulate.worlds.worlds import world_names as world_names

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "run.policies": ["contender"],
        "run.run": ["Contender", "simulate"],
        "tally": ["Run"],
        "trace": ["Past", "Signals", "Trace"],
        "traces.bing": ["bing_chunks", "read_bing"],
        "traces.control": ["poisson_control"],
        "traces.files": ["write_trace"],
        "traces.recorded": ["read_trace"],
        "worlds.population": ["bing_like", "bing_signals", "uniform_pages"],
        "worlds.worlds": ["World", "world", "world_names"],
    },
)

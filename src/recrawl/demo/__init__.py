"""The changing web, on loopback and in memory: known changes, served, crawled live and judged by what happened."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.demo.judge import Rival as Rival
    from recrawl.demo.judge import rivals as rivals
    from recrawl.demo.judge import true_freshness as true_freshness
    from recrawl.demo.judge import window as window
    from recrawl.demo.live import LiveDemo as LiveDemo
    from recrawl.demo.pages import visible_text as visible_text
    from recrawl.demo.politeness import Manners as Manners
    from recrawl.demo.politeness import manners as manners
    from recrawl.demo.progress import Progress as Progress
    from recrawl.demo.replay.happenings import ReplayOptions as ReplayOptions
    from recrawl.demo.replay.live import Replay as Replay
    from recrawl.demo.replay.live import even_budget as even_budget
    from recrawl.demo.replay.live import replay_trace as replay_trace
    from recrawl.demo.replay.web import TraceWeb as TraceWeb
    from recrawl.demo.resolver import LoopbackResolver as LoopbackResolver
    from recrawl.demo.server import DemoServer as DemoServer
    from recrawl.demo.verdict import Renewal as Renewal
    from recrawl.demo.verdict import Sample as Sample
    from recrawl.demo.verdict import SecondHalf as SecondHalf
    from recrawl.demo.verdict import SourceCounts as SourceCounts
    from recrawl.demo.verdict import Verdict as Verdict
    from recrawl.demo.verdict import WithoutSignals as WithoutSignals
    from recrawl.demo.web import DemoWeb as DemoWeb
    from recrawl.demo.web import ServedRequest as ServedRequest
    from recrawl.demo.world import DAY as DAY
    from recrawl.demo.world import SITES as SITES
    from recrawl.demo.world import DemoWorld as DemoWorld
    from recrawl.demo.world import Site as Site
    from recrawl.demo.world import draw_world as draw_world

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "judge": ["Rival", "rivals", "true_freshness", "window"],
        "live": ["LiveDemo"],
        "pages": ["visible_text"],
        "politeness": ["Manners", "manners"],
        "progress": ["Progress"],
        "replay.happenings": ["ReplayOptions"],
        "replay.live": ["Replay", "even_budget", "replay_trace"],
        "replay.web": ["TraceWeb"],
        "resolver": ["LoopbackResolver"],
        "server": ["DemoServer"],
        "verdict": ["Renewal", "Sample", "SecondHalf", "SourceCounts", "Verdict", "WithoutSignals"],
        "web": ["DemoWeb", "ServedRequest"],
        "world": ["DAY", "DemoWorld", "SITES", "Site", "draw_world"],
    },
)

"""Parameters in, next page out."""

from recrawl.schedule.scheduler import Scheduler

__all__ = ["Scheduler"]

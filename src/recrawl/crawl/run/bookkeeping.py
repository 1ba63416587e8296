"""Bookkeeping of a run: batches and notes to the store, commands from it, the log, and the end."""

from __future__ import annotations

import asyncio

from recrawl.crawl.run.checkpoints import Checkpoints
from recrawl.crawl.run.commands import CommandHooks, CommandQueue
from recrawl.crawl.run.opening.components import TRUST, Components
from recrawl.crawl.run.run_log import described, log_progress
from recrawl.errors import StoreError

_TRUST_EVERY = 60.0  # seconds between two notes of which servers' "not modified" is trusted
_GRACE = 20.0  # seconds that crawls have to end after stop()


class Bookkeeper:
    """Writes what a run learned, applies commands, and raises what went wrong in a task."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._recorder, self._pool, self._audits = components.recorder, components.pool, components.audits
        rules = components.options.rules
        hooks = CommandHooks(
            self._audits.request,
            components.inbox.forget,
            components.receivers.removed,
            components.set_token,
            components.polls.add,
            components.polls.follow,
            components.inbox.take_queued,
            components.receivers.received,
            components.polls.remove,
        )
        self._commands = CommandQueue(components.engine, components.store, rules, hooks)
        self._commands_at = components.clock.now()
        self._applying: asyncio.Task[None] | None = None
        self._trust_written_at = components.clock.now()
        self._broken = False
        self._checkpoints = Checkpoints(components, self._committed)

    def check(self) -> None:
        """Raise what went wrong in a task."""
        try:
            self._pool.check()
        except StoreError:
            self._broken = True  # what follows on something that was not written must not be written either
            raise

    def begin_log(self, began: float) -> asyncio.Task[None]:
        """Log that a run begins; the task that logs its progress."""
        self._components.report.started(**described(self._components))
        return asyncio.create_task(log_progress(self._components, began))

    # --- commands -----------------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """A run begins: commands are applied at once."""
        self._commands_at = now
        self._checkpoints.begin(now)

    def apply_commands(self, now: float) -> float:
        """Start to apply commands of other processes if it is time; when it is time again."""
        if now >= self._commands_at and self._applying is None:
            self._commands_at = now + self._components.options.commands_every
            self._applying = asyncio.create_task(self._apply_commands(now))
            self._pool.watch(self._applying)
        return self._commands_at

    async def apply_queued(self) -> None:
        """Apply all commands that are queued now."""
        while self._applying is not None:
            await asyncio.wait([self._applying])
        self._applying = asyncio.create_task(self._apply_commands(self._components.clock.now()))
        self._pool.watch(self._applying)
        await asyncio.shield(self._applying)

    async def _apply_commands(self, now: float) -> None:
        try:
            components = self._components
            n = await self._commands.apply(now)
            if n:
                components.report("commands", n=n)
                components.deliveries.notify()
            components.budget.set_pages(len(components.engine), components.clock.now())
        finally:
            self._applying = None

    # --- the store ----------------------------------------------------------------------------------------------------

    def save_if_due(self, now: float) -> None:
        """Start to write a batch, or a checkpoint, when it is time."""
        writing = self._checkpoints.start_if_due(now)
        if writing is not None:
            self._pool.watch(writing)
        if self._recorder.due_at(now) > now:
            return
        notes = self._pending_notes() | self._audits.pending_notes()
        if now - self._trust_written_at > _TRUST_EVERY:
            self._trust_written_at = now
            notes[TRUST] = self._components.not_modified.state()
        self._pool.watch(self._recorder.begin_save(notes))

    def _pending_notes(self) -> dict[str, object]:
        """What was learned of feeds and robots.txt since the last time, and how many signals came."""
        robots = self._components.robots
        inbox = self._components.inbox
        found = self._components.feeds.pending_notes() | inbox.tally.pending_notes() | inbox.effects.pending_notes()
        return found | ({} if robots is None else robots.pending_notes())

    async def _committed(self) -> None:
        """Write all that the engine knows by now."""
        if self._applying is not None:
            await asyncio.wait([self._applying])
        await self._recorder.commit([])

    async def end(self) -> None:
        """Let crawls end, write what they found, and up to when the budget is spent."""
        components = self._components
        components.budget.end()
        await self._pool.end(_GRACE)
        await components.polls.end(save=not self._broken)
        if self._broken:
            return
        await components.budget.covered()
        for task in (self._recorder.saving, self._applying, components.noting):
            if task is not None:
                await asyncio.wait([task])
        self.check()
        now = components.clock.now()
        if self._audits.busy:
            self._audits.end(now)
        notes = {**components.budget.last_mark(now), TRUST: components.not_modified.state()}
        notes |= components.limiter.budgets.last_notes(now)
        notes |= self._pending_notes() | self._audits.pending_notes(last=True)
        notes |= components.unspent.pending_notes(now, last=True) | components.freshness.pending_notes(now, last=True)
        await self._recorder.finish(notes, now)
        await components.deliveries.finish()
        self.check()
        await self._checkpoints.finish()

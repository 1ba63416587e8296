"""Notifiers of a crawl, from its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.notify import Notify
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.deliver.notify.hook import Hook
from recrawl.crawl.deliver.notify.mail import Mail
from recrawl.crawl.deliver.notify.notifier import PREFIX, Notifier, Send
from recrawl.crawl.deliver.subscribers import Callback
from recrawl.store.protocol import Store


class Sender(Protocol):
    """What sends something, and is closed at the end."""

    async def close(self) -> None:
        """Close its connections."""
        ...


def check_notify(settings: Settings) -> None:
    """Raise ParameterError if a message could not be sent under these settings."""
    for one in settings.notifications():
        sender_of(one, settings)


def texts_wanted(settings: Settings) -> bool | Callable[[str], bool]:
    """Of which pages the texts are needed, to show what changed."""
    rules = [one for one in settings.notifications() if one.diff]
    return (lambda url: any(one.matches(url) for one in rules)) if rules else False


def sender_of(notify: Notify, settings: Settings) -> Mail | Hook:
    """What sends the messages of a notification."""
    if notify.mail:
        return Mail(settings.mail_server(), notify.mail)
    agent = settings.user_agent.strip() or "recrawl"
    return Hook(notify.url(), notify.template, user_agent=agent, allow_private=notify.allow_private)


async def open_notifiers(settings: Settings, store: Store, clock: Clock) -> tuple[list[Sender], dict[str, Callback]]:
    """The senders and subscribers of all notifications; those that the settings no longer have are forgotten."""
    senders: list[Sender] = []
    found: dict[str, Callback] = {}
    for one in settings.notifications():
        sender = sender_of(one, settings)
        send: Send = sender
        senders.append(sender)
        found[PREFIX + one.name] = Notifier(one, send, store, clock)
    for subscriber in await store.subscribers():
        if subscriber.name.startswith(PREFIX) and subscriber.name not in found:
            await store.remove_subscriber(subscriber.name)
            await store.save(notes={subscriber.name: None})
    return senders, found

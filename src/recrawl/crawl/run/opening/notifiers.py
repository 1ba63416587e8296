"""Notifiers of a crawl, from its settings."""

from __future__ import annotations

from collections.abc import Callable

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.notify import Notify
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.deliver.notify.hook import Hook
from recrawl.crawl.deliver.notify.mail import Mail
from recrawl.crawl.deliver.notify.notifier import PREFIX, Notifier
from recrawl.crawl.deliver.subscribers import Callback
from recrawl.crawl.run.opening.components import Components
from recrawl.store.protocol import Store

MAIL_SERVER = ("smtp", "smtp_tls", "smtp_from", "smtp_user", "smtp_password", "smtp_password_file")  # settings


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


def notifier_of(notify: Notify, settings: Settings, store: Store, clock: Clock) -> Notifier:
    """The subscriber of a notification."""
    return Notifier(notify, sender_of(notify, settings), store, clock)


async def open_notifiers(settings: Settings, store: Store, clock: Clock) -> dict[str, Callback]:
    """The subscribers of all notifications; those that the settings no longer have are forgotten."""
    found: dict[str, Callback] = {
        PREFIX + one.name: notifier_of(one, settings, store, clock) for one in settings.notifications()
    }
    for subscriber in await store.subscribers():
        if subscriber.name.startswith(PREFIX) and subscriber.name not in found:
            await _forget(store, subscriber.name)
    return found


async def renew_notifiers(components: Components, old: Settings, new: Settings) -> None:
    """Use other notifications from now on; those that stay as they are go on, and keep what waits."""
    before, after = ({PREFIX + one.name: one for one in s.notifications()} for s in (old, new))
    store, clock, deliveries = components.store, components.clock, components.deliveries
    components.comparer.texts = new.event_text or texts_wanted(new)
    other_server = any(getattr(old, name) != getattr(new, name) for name in MAIL_SERVER)
    stay = [name for name, one in before.items() if one == after.get(name) and not (one.mail and other_server)]
    for name in before:
        if name not in stay:
            callback = await deliveries.remove(name)
            if isinstance(callback, Notifier):
                await callback.close()
            if name not in after:
                await _forget(store, name)
    for name, notify in after.items():
        if name not in stay:
            await deliveries.add(name, notifier_of(notify, new, store, clock))


async def _forget(store: Store, name: str) -> None:
    """Remove a subscriber and what waits for it."""
    await store.remove_subscriber(name)
    await store.save(notes={name: None})

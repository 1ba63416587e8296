"""Notifications for people: messages about events, by e-mail or to a webhook."""

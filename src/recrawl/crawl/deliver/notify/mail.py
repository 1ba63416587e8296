"""Messages by e-mail. The connection is encrypted unless the settings say otherwise; the password is in no message."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import smtplib
import ssl
from dataclasses import dataclass, field
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from recrawl.crawl.deliver.notify.message import Message
from recrawl.crawl.deliver.subscribers import NotDelivered
from recrawl.errors import ParameterError
from recrawl.logs import event

TLS = ("starttls", "tls", "none")
_LOCAL = ("localhost", "127.0.0.1", "::1")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MailServer:
    """The server that messages are given to; ``tls`` is one of ``TLS``."""

    host: str
    port: int
    sender: str
    tls: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    timeout: float = 20.0
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)  # default: the system's certificates

    def __post_init__(self) -> None:
        check_address(self.sender, "smtp_from")
        if self.user and self.tls == "none" and self.host not in _LOCAL:
            raise ParameterError('smtp_user: a password is not sent without encryption; set smtp_tls to "starttls"')
        if self.user and not self.password:
            raise ParameterError(
                "smtp_user needs a password: give it as RECRAWL_SMTP_PASSWORD in the environment, "
                "or in a file that smtp_password_file names"
            )


def check_address(text: str, where: str) -> None:
    """Raise ParameterError unless a text is one e-mail address."""
    try:
        if not text.isprintable() or " " in text:
            raise ValueError
        parts = Address(addr_spec=text)
        if not parts.username or not parts.domain or not text.isascii():
            raise ValueError
    except (ValueError, IndexError, AttributeError, MessageError):
        raise ParameterError(f"{where}: {text!r} is not an e-mail address such as you@example.org") from None


class Mail:
    """Sends messages to addresses; each in a connection of its own, in a thread."""

    def __init__(self, server: MailServer, to: tuple[str, ...]) -> None:
        self._server, self._to = server, to

    async def __call__(self, message: Message) -> None:
        """Send a message, or raise NotDelivered."""
        await asyncio.to_thread(self._deliver, composed(message, self._server.sender, self._to))

    def _deliver(self, mail: EmailMessage) -> None:
        try:
            with self._connected() as connection:
                if self._server.user:
                    connection.login(self._server.user, self._server.password)
                refused = connection.send_message(mail, self._server.sender, self._to)
        except (smtplib.SMTPException, OSError) as problem:
            raise NotDelivered(_reason(problem, self._server.timeout)) from None
        if refused:  # the others have it: it is not sent again
            event(log, logging.WARNING, "notify.refused", recipients=len(refused))

    def _connected(self) -> smtplib.SMTP:
        server = self._server
        context = server.ssl_context or ssl.create_default_context()
        if server.tls == "tls":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=context)
        connection = smtplib.SMTP(server.host, server.port, timeout=server.timeout)
        if server.tls == "starttls":
            try:
                connection.starttls(context=context)
            except BaseException:
                connection.close()
                raise
        return connection

    async def close(self) -> None:
        """Nothing stays open."""


def composed(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail of a message, as text and as HTML. Headers hold one line each: EmailMessage refuses others."""
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Subject"] = message.subject
    mail["Date"] = formatdate(usegmt=True)
    name = hashlib.sha256(f"{message.id} {len(message.items)}".encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{name}@{sender.rpartition('@')[2]}>"  # the same when it is sent again
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text())
    mail.add_alternative(message.html(), subtype="html")
    return mail


def _reason(problem: Exception, timeout: float) -> str:
    """Why a mail was not sent, without addresses and without what the server says of the login."""
    if isinstance(problem, smtplib.SMTPAuthenticationError):
        return f"the mail server refused the login ({problem.smtp_code})"
    if isinstance(problem, smtplib.SMTPRecipientsRefused):
        codes = sorted({str(code) for code, _ in problem.recipients.values()})
        return f"the mail server refused the recipients ({', '.join(codes)})"
    if isinstance(problem, smtplib.SMTPResponseException):
        return f"the mail server answered {problem.smtp_code}"
    if isinstance(problem, smtplib.SMTPNotSupportedError):
        return "the mail server offers no encryption or no login"
    if isinstance(problem, ssl.SSLError):
        return "no trusted encrypted connection to the mail server"
    if isinstance(problem, TimeoutError):
        return f"no answer of the mail server within {timeout:g} s"
    return f"no connection to the mail server ({type(problem).__name__})"

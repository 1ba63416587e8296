"""A real mail server on loopback, for tests."""

import socket
import ssl
from contextlib import contextmanager
from email import message_from_bytes, policy
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP as SmtpServer
from aiosmtpd.smtp import AuthResult

PASSWORD = "correct horse battery"


class Mailbox:
    """What aiosmtpd gives to a handler: keeps mails; refuses as long as ``refuses`` is not 0."""

    def __init__(self):
        self.mails, self.refuses, self.tries, self.users = [], 0, 0, []

    async def handle_DATA(self, server, session, envelope):
        self.tries += 1
        if self.refuses:
            self.refuses -= 1
            return "451 try later"
        self.mails.append((envelope, message_from_bytes(envelope.content, policy=policy.default)))
        return "250 ok"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    def authenticated(self, server, session, envelope, mechanism, data):
        self.users.append(data.login.decode())
        return AuthResult(success=data.password.decode() == PASSWORD, handled=False)


class SmtpController(Controller):
    """A mail server on any free port."""

    def factory(self):
        return SmtpServer(self.handler, **self.SMTP_kwargs)


def certified(protocol=ssl.PROTOCOL_TLS_SERVER):
    """A context with a certificate that nobody trusts but who is given it."""
    context = ssl.SSLContext(protocol)
    context.load_cert_chain(Path(__file__).parent / "untrusted.pem")
    return context


def trusting():
    """A client's context that accepts that certificate, without its name."""
    context = ssl.create_default_context(cafile=str(Path(__file__).parent / "untrusted.pem"))
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def receiving():
    """A mailbox, and a way to start servers for it."""
    box, started = Mailbox(), []

    def serve(**options):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        controller = SmtpController(box, hostname="127.0.0.1", port=port, **options)
        controller.start()
        started.append(controller)
        return port

    box.serve = serve
    yield box
    for one in started:
        one.stop()

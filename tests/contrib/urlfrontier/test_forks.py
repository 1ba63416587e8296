"""A process that serves by gRPC can be copied: checkpoints are written by a copy."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio

import recrawl.contrib.urlfrontier
import grpc.aio

from recrawl._system.forks import ended_well, fork


async def main():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            await channel.unary_unary("/none/none")(b"")
        except grpc.aio.AioRpcError:
            pass
        print([ended_well(fork(lambda: [bytes(1000) for _ in range(200_000)])) for _ in range(8)])
    await server.stop(None)


asyncio.run(main())
"""


@pytest.mark.slow
def test_copies_of_a_process_with_grpc_do_their_work():
    given = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split("\n")[0] == str([True] * 8), done.stderr

"""Whether TensorFlow's server answers on a task's port: one empty gRPC request, no grpcio (facts §13)."""

from __future__ import annotations

import asyncio
import contextlib

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded
from h2.exceptions import ProtocolError

_PATH = "/tensorflow.WorkerService/GetStatus"
#: An empty protobuf message as gRPC frames it: not compressed, no bytes.
_EMPTY = b"\0\0\0\0\0"


async def answers(port: int, *, host: str = "127.0.0.1", within: float = 1.0) -> bool:
    """Whether a gRPC server there answers `within` so many seconds. A stopped process connects, and says nothing."""
    try:
        async with asyncio.timeout(within):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                return await _ask(reader, writer, f"{host}:{port}")
            finally:
                writer.close()
    except (OSError, TimeoutError, ProtocolError):
        return False


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, authority: str) -> bool:
    connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    connection.initiate_connection()
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": _PATH,
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    connection.send_headers(1, list(headers.items()))
    connection.send_data(1, _EMPTY, end_stream=True)
    writer.write(connection.data_to_send())
    answered = False
    while data := await reader.read(1 << 16):
        events: list[Event] = connection.receive_data(data)
        answered = answered or any(isinstance(event, ResponseReceived | DataReceived) for event in events)
        if answered or any(isinstance(event, StreamEnded) for event in events):
            connection.close_connection()
            with contextlib.suppress(OSError):
                writer.write(connection.data_to_send())
            return answered
        writer.write(connection.data_to_send())
    return False

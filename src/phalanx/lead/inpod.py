"""The API of the cluster, as it is reached from inside a pod: with the token that is mounted, and nothing installed."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from phalanx.apiwatch import ApiRefusedError
from phalanx.names import join_host_port

#: Where a pod finds its token, the cluster's certificate authority, and the name of its namespace.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: Seconds within which an answer must begin.
_ANSWER = 10.0
_OK = range(200, 300)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class InPod:
    """See apiwatch.Api. A connection for each request, straight to the API; the token is read anew each time, since it
    is valid for an hour or less.
    """

    host: str
    port: int
    account: Path
    #: False only where a test stands in for the API.
    secure: bool = True

    @classmethod
    def here(cls, environ: Mapping[str, str], account: Path = ACCOUNT) -> InPod | None:
        """None where this pod has no token, or this is no pod."""
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not port.isdecimal() or not (account / "token").is_file():
            return None
        return cls(host=host.strip("[]"), port=int(port), account=account)

    @classmethod
    def nowhere(cls) -> InPod:
        """For who has none: nothing is asked of it."""
        return cls(host="", port=0, account=ACCOUNT)

    @property
    def namespace(self) -> str:
        """The pod's own."""
        return (self.account / "namespace").read_text(encoding="utf-8").strip()

    def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """See apiwatch.Api."""
        with self._request("GET", f"{path}?{urllib.parse.urlencode(query)}", None, "", quiet=_ANSWER) as answer:
            return _object(answer.read())

    def lines(self, path: str, query: Mapping[str, str], *, quiet: float) -> Iterator[bytes]:
        """See apiwatch.Api."""
        with self._request("GET", f"{path}?{urllib.parse.urlencode(query)}", None, "", quiet=quiet) as answer:
            while True:
                try:
                    line = answer.readline()
                except (OSError, http.client.HTTPException) as wrong:
                    raise ApiRefusedError(0, str(wrong) or type(wrong).__name__) from wrong
                if not line:
                    return
                yield line

    def merge(self, path: str, change: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a change into an object. Raises ApiRefusedError."""
        body = json.dumps(change).encode()
        with self._request("PATCH", path, body, "application/merge-patch+json", quiet=_ANSWER) as answer:
            return _object(answer.read())

    @contextlib.contextmanager
    def _request(
        self, method: str, path: str, body: bytes | None, content: str, *, quiet: float
    ) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection()
        try:
            try:
                token = (self.account / "token").read_text(encoding="utf-8").strip()
                headers = {"Authorization": f"Bearer {token}", "Host": join_host_port(self.host, self.port)}
                headers |= {"Content-Type": content} if content else {}
                connection.request(method, path, body=body, headers=headers)
                answer = connection.getresponse()
                if answer.status not in _OK:
                    raise _refusal(answer)
                if connection.sock is not None:
                    connection.sock.settimeout(quiet)
            except (OSError, http.client.HTTPException) as wrong:
                raise ApiRefusedError(0, str(wrong) or type(wrong).__name__) from wrong
            yield answer
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if not self.secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=_ANSWER)
        try:
            trusted = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
        except OSError as wrong:
            raise ApiRefusedError(0, f"{self.account / 'ca.crt'}: {wrong}") from wrong
        return http.client.HTTPSConnection(self.host, self.port, timeout=_ANSWER, context=trusted)


def _refusal(answer: http.client.HTTPResponse) -> ApiRefusedError:
    text = answer.read(1 << 16).decode(errors="replace")
    with contextlib.suppress(ValueError):
        text = str(json.loads(text).get("message") or text)
    after = answer.headers.get("Retry-After", "")
    return ApiRefusedError(answer.status, text[:500], retry_after=float(after) if after.isdecimal() else 0.0)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as wrong:
        raise ApiRefusedError(0, f"no JSON: {text[:80]!r}") from wrong
    return found if isinstance(found, dict) else {}

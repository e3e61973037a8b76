"""The word for a lead whose time is over."""

from __future__ import annotations

from phalanx.errors import ProtocolError


class DeposedError(ProtocolError):
    """Another lead of a later epoch has taken over: this one ends, and writes nothing any more."""

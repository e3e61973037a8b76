"""One address of a task: `host:port`, read as gRPC and the resolver would, with everything wrong with it."""

from __future__ import annotations

import re
from typing import NamedTuple

from phalanx.tfconfig.quote import shown

#: A sound name or IPv4 address and a port without a leading zero: nearly every address there is.
_USUAL = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?):([1-9][0-9]{0,4})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+")
_BRACKETED = re.compile(r"\[([^\[\]]*)\](.*)", re.DOTALL)
_DOTTED = re.compile(r"[0-9.]+")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_TEMPLATE = re.compile(r"\$[({A-Za-z_]|\{\{|<[A-Za-z]|%[({]")
_LOOPBACK = re.compile(r"localhost(\.localdomain)?|ip6-localhost|127(\.[0-9]+){3}|.*\.localhost")

_MAX_PORT = 65535
_MAX_LABEL = 63
_MAX_NAME = 253
_OCTETS = 4
_MAX_OCTET = 255
_PARTS = 8


class Fault(NamedTuple):
    """What is wrong: the id of its rule, a sentence, and what to write instead where that is plain."""

    id: str
    message: str
    fix: str = ""


class Address(NamedTuple):
    """Host (without brackets) and port as far as they can be told, and the faults."""

    host: str
    port: int | None
    faults: tuple[Fault, ...] = ()

    @property
    def canonical(self) -> str:
        """Equal for hosts that are written differently and the same to the resolver: `N7.` and `n7`."""
        host = self.host.casefold()
        return _v6(host) or host if ":" in host else host.removesuffix(".")

    @property
    def loopback(self) -> bool:
        """Whether the host is the machine that asks."""
        host = self.canonical
        return host == "::1" or _LOOPBACK.fullmatch(host) is not None

    @property
    def wildcard(self) -> bool:
        """Whether it is the address that servers listen at and nobody can be reached at."""
        return self.canonical in {"0.0.0.0", "::"}  # noqa: S104 - recognised, not bound


def read(text: str) -> Address:
    """Take an address apart. Never raises."""
    usual = _USUAL.fullmatch(text)
    if usual and int(usual[2]) <= _MAX_PORT and not _DOTTED.fullmatch(usual[1]) and not _odd_dots(usual[1]):
        return Address(usual[1], int(usual[2]))
    faults: list[Fault] = []
    rest = _strip(text, faults)
    host, port_text = _split(rest, faults)
    port = None if port_text is None else _port(port_text, faults)
    if host is not None:
        faults += _host_faults(host)
    return Address(host or "", port, tuple(faults))


def without_trimmings(text: str) -> tuple[str, list[str]]:
    """The address without white space, scheme, user and closing slash, and what was taken off.

    The text as it is where nothing would be left. Idempotent.
    """
    rest, taken = text, list[str]()
    while True:
        scheme = _SCHEME.match(rest)
        if rest != rest.strip():
            rest, what = rest.strip(), "white space"
        elif scheme:
            rest, what = rest[scheme.end() :], f"the scheme {scheme[0].lower()}"
        elif "@" in rest:
            rest, what = rest.rpartition("@")[2], "the user name"
        elif rest.endswith("/"):
            rest, what = rest.rstrip("/"), "the closing slash"
        else:
            return (rest, taken) if rest else (text, [])
        taken.append(what)


def _odd_dots(host: str) -> bool:
    return ".." in host or ".-" in host or "-." in host


def _strip(text: str, faults: list[Fault]) -> str:
    """Take off what does not belong to host and port: spaces, a scheme, a user, a path."""
    rest = text.strip()
    if not rest:
        faults.append(Fault("address-empty", "the address is empty"))
        return ""
    if text[0].isspace():
        faults.append(Fault("address-leading-space", f"white space before {shown(rest)}", f"write {shown(rest)}"))
    if text[-1].isspace():
        faults.append(Fault("address-trailing-space", f"white space after {shown(rest)}", f"write {shown(rest)}"))
    scheme = _SCHEME.match(rest)
    if scheme:
        rest = rest[scheme.end() :]
        faults.append(Fault("address-scheme", f"{shown(scheme[0], 20)} does not belong here", f"write {shown(rest)}"))
    _, at, after = rest.rpartition("@")
    if at:
        rest = after
        message = f"a user name stands before {shown(after)}: TensorFlow opens no remote shell"
        faults.append(Fault("address-user", message, f"write {shown(after)}, and start the process on each machine"))
    before, slash, _ = rest.partition("/")
    if slash:
        faults.append(Fault("address-path", f"{shown(rest)} has a path", f"write {shown(before)}"))
        rest = before
    return rest


def _split(rest: str, faults: list[Fault]) -> tuple[str | None, str | None]:
    """Host and the text of the port; None for what cannot be told."""
    if not rest:
        return None, None
    if rest.startswith("["):
        return _split_brackets(rest, faults)
    host, colon, port = rest.rpartition(":")
    if ":" in host:
        faults.append(_colons(rest, host, port))
        return None, None
    if not colon:
        faults.append(Fault("address-no-port", f"{shown(rest)} has no port", f"write {shown(f'{rest}:2222')}"))
        return rest, None
    if not host:
        faults.append(Fault("address-no-host", f"{shown(rest)} has no host"))
    return host or None, port


def _split_brackets(rest: str, faults: list[Fault]) -> tuple[str | None, str | None]:
    found = _BRACKETED.fullmatch(rest)
    if found is None or not _v6(found[1]):
        faults.append(Fault("address-host", f"{shown(rest)} does not hold an IPv6 address in its brackets"))
        return None, None
    host, after = found[1], found[2]
    if after.startswith(":"):
        return host, after[1:]
    faults.append(Fault("address-no-port", f"{shown(rest)} has no port", f"write {shown(f'[{host}]:2222')}"))
    return host, None


def _colons(rest: str, host: str, port: str) -> Fault:
    """More than one colon and no brackets."""
    if "," in rest:
        parts = ", ".join(shown(part.strip()) for part in rest.split(",")[:_PARTS] if part.strip())
        return Fault("address-joined", f"{shown(rest)} holds several addresses", f"write {parts}")
    if not _v6(rest) and not _v6(host):
        return Fault("address-host", f"{shown(rest)} has more than one colon")
    message = f"{shown(rest)} is IPv6 without brackets: where it ends and the port begins is anybody's guess"
    right = (
        f"write {shown(f'[{host}]:{port}')}, if {port} is the port" if _v6(host) else f"write {shown(f'[{rest}]:2222')}"
    )
    return Fault("address-ipv6-bare", message, right)


def _port(text: str, faults: list[Fault]) -> int | None:
    if not text:
        faults.append(Fault("address-no-port", "nothing stands after the colon"))
        return None
    if not (text.isascii() and text.isdigit()):
        faults.append(Fault("address-port", f"the port {shown(text)} is no number"))
        return None
    port = int(text) if len(text) <= _MAX_LABEL else _MAX_PORT + 1
    if port == 0:
        faults.append(Fault("address-port-zero", "port 0 means any free port, and the others cannot know which"))
    elif port > _MAX_PORT:
        faults.append(Fault("address-port-range", f"port {shown(text)} is above {_MAX_PORT}"))
        return None
    return port


def _host_faults(host: str) -> list[Fault]:
    if ":" in host:
        return [Fault("address-ipv6", f"{shown(host)} is an IPv6 address")]
    if _DOTTED.fullmatch(host):
        message = f"{shown(host)} is no IPv4 address: four numbers from 0 to 255"
        return [] if _is_v4(host) else [Fault("address-ipv4", message)]
    if _TEMPLATE.search(host):
        return [Fault("address-host", f"{shown(host)} is a placeholder that nobody filled in")]
    if not host.isascii():
        return [Fault("address-host", f"{shown(host)} has letters outside ASCII; write its xn-- form")]
    return _name_faults(host)


def _is_v4(host: str) -> bool:
    parts = host.split(".")
    octets = all(part and int(part[:4]) <= _MAX_OCTET and (part[0] != "0" or part == "0") for part in parts)
    return len(parts) == _OCTETS and octets


def _name_faults(host: str) -> list[Fault]:
    name = host.removesuffix(".")
    if len(name) > _MAX_NAME:
        return [Fault("address-name-length", f"the name has {len(name)} characters; DNS allows {_MAX_NAME}")]
    faults = []
    for label in name.split("."):
        if len(label) > _MAX_LABEL:
            message = f"{shown(label)} has {len(label)} characters; DNS allows {_MAX_LABEL} between dots"
            faults.append(Fault("address-label-length", message))
        elif not _LABEL.fullmatch(label):
            what = "is no host name" if label else "has nothing between two dots"
            faults.append(Fault("address-host", f"{shown(host)} {what}"))
            break
    if "_" in name and not faults:
        faults.append(Fault("address-underscore", f"{shown(host)} has an underscore, which host names may not have"))
    return faults


def _v6(text: str) -> str:
    """The usual form of an IPv6 address (with its %zone), "" where it is none."""
    import ipaddress  # noqa: PLC0415 - 4 ms at start-up that hardly any TF_CONFIG needs

    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return ""

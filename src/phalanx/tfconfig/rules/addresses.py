"""Rules about addresses: each by itself, then all of them together."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from types import MappingProxyType

from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.meaning import Entry
from phalanx.tfconfig.quote import shown
from phalanx.tfconfig.rule import Case, Hit, Rule

#: The first TensorFlow on which a bracketed IPv6 address was seen to work; earlier ones listen on 0.0.0.0.
IPV6_SINCE = (2, 21)

#: Linux's default net.ipv4.ip_local_port_range.
EPHEMERAL = range(32768, 61000)
#: Below, a port wants a privilege.
_PRIVILEGED = 1024

_SERVICES = MappingProxyType(
    {
        22: "ssh",
        80: "http",
        443: "https",
        2379: "etcd",
        6006: "TensorBoard",
        6443: "the Kubernetes API server",
        8080: "http proxies and consoles",
        8888: "Jupyter",
        10250: "the kubelet",
    }
)


def _fault(*rules: str) -> Callable[[Case], Iterator[Hit]]:
    """What `address.read` found, told with the task's name."""

    def find(case: Case) -> Iterator[Hit]:
        for entry in case.entries:
            for fault in entry.address.faults:
                if fault.id in rules:
                    yield Hit(entry.pointer, f"{entry.name}: {fault.message}", fault.fix)

    return find


def _ipv6(*, works: bool) -> Callable[[Case], Iterator[Hit]]:
    found = _fault("address-ipv6")

    def find(case: Case) -> Iterator[Hit]:
        known = case.tf_version is not None and case.tf_version >= IPV6_SINCE
        return (hit._replace(group="ipv6") for hit in found(case)) if known is works else iter(())

    return find


def _served(case: Case) -> Iterator[Entry]:
    """The addresses where somebody must be reached: the evaluator runs no server."""
    return (entry for entry in case.entries if entry.type != "evaluator" and entry.address.host)


def _local(case: Case) -> Iterator[Hit]:
    if case.hosts is not None and case.hosts > 1:
        for entry in _served(case):
            if entry.address.loopback:
                host = shown(entry.address.host)
                message = f"{entry.name}: {host} is another machine on each of the {case.hosts} hosts"
                yield Hit(entry.pointer, message, group="local")


def _mixed(case: Case) -> Iterator[Hit]:
    if case.hosts is not None:
        return
    served = list(_served(case))
    local = [entry for entry in served if entry.address.loopback]
    if local and len(local) < len(served):
        other = next(entry for entry in served if not entry.address.loopback)
        for entry in local:
            here, there = shown(entry.address.host), shown(other.address.host)
            message = f"{entry.name}: {here} beside real names such as {there}"
            yield Hit(entry.pointer, message, group="local")


def _wildcard(case: Case) -> Iterator[Hit]:
    served = list(_served(case))
    for entry in served:
        if entry.address.wildcard and len(served) > 1:
            message = f"{entry.name}: nobody can be reached at {shown(entry.address.host)}"
            yield Hit(entry.pointer, message, group="wildcard")


def _key(entry: Entry) -> tuple[str, int] | None:
    address = entry.address
    return (address.canonical, address.port) if address.host and address.port else None


def _duplicate(case: Case) -> Iterator[Hit]:
    first: dict[tuple[str, int], Entry] = {}
    for entry in case.entries:
        key = _key(entry)
        if key is None:
            continue
        other = first.setdefault(key, entry)
        if other is not entry:
            yield Hit(entry.pointer, f"{entry.name} has the same address as {other.name}: {shown(other.text)}")


def _alias(case: Case) -> Iterator[Hit]:
    """The same machine under two names: loopback names, and whatever the resolver knows."""
    first: dict[tuple[str, int], Entry] = {}
    for entry in _served(case):
        if entry.address.port is None:
            continue
        for ip in _ips(case, entry):
            other = first.setdefault((ip, entry.address.port), entry)
            if other is not entry and _key(other) != _key(entry):
                message = f"{entry.name}: {shown(entry.text)} is the same place as {shown(other.text)} of {other.name}"
                yield Hit(entry.pointer, message)
                break


def _ips(case: Case, entry: Entry) -> list[str]:
    address = entry.address
    if address.loopback:
        return ["loopback"]
    found = case.resolve(address.host) if case.resolve is not None else frozenset[str]()
    return [address.canonical, *sorted(found)]


def _unresolved(case: Case) -> Iterator[Hit]:
    if case.resolve is None:
        return
    for entry in _served(case):
        if not entry.address.faults and not case.resolve(entry.address.host):
            yield Hit(entry.pointer, f"{entry.name}: {shown(entry.address.host)} does not resolve on this machine")


def _ports(case: Case) -> Iterator[tuple[Entry, int]]:
    return ((entry, entry.address.port) for entry in _served(case) if entry.address.port)


def _privileged(case: Case) -> Iterator[Hit]:
    for entry, port in _ports(case):
        if port < _PRIVILEGED and port not in _SERVICES:
            yield Hit(entry.pointer, f"{entry.name}: port {port} is below {_PRIVILEGED}", group=f"{entry.type}:{port}")


def _ephemeral(case: Case) -> Iterator[Hit]:
    for entry, port in _ports(case):
        if port in EPHEMERAL:
            span = f"{EPHEMERAL.start}-{EPHEMERAL.stop - 1}"
            yield Hit(entry.pointer, f"{entry.name}: port {port} is in the ephemeral range ({span})", group=entry.type)


def _service(case: Case) -> Iterator[Hit]:
    for entry, port in _ports(case):
        if port in _SERVICES:
            message = f"{entry.name}: port {port} is where {_SERVICES[port]} usually listens"
            yield Hit(entry.pointer, message, group=f"{entry.type}:{port}")


def _proxy(case: Case) -> Iterator[Hit]:
    environ = case.environ or {}
    set_ = next((name for name in ("grpc_proxy", "https_proxy", "http_proxy") if environ.get(name)), None)
    if set_ is None or len(case.entries) < 2:  # noqa: PLR2004 - alone nobody is dialled
        return
    excepted = environ.get("no_grpc_proxy") or environ.get("no_proxy") or ""
    suffixes = tuple(part.strip().casefold() for part in excepted.split(",") if part.strip())
    hosts = collections.Counter(entry.address.host.casefold() for entry in _served(case))
    missed = [host for host in hosts if not _excepted(host, suffixes)]
    if missed:
        more = f" and {len(missed) - 1} more" if len(missed) > 1 else ""
        message = f"{set_} is set, and no_proxy does not name {shown(missed[0])}{more}"
        yield Hit("/cluster", message, f"add to no_proxy: {','.join(missed[:20])}{',…' if len(missed) > 20 else ''}")  # noqa: PLR2004 - a long list helps nobody


def _excepted(host: str, suffixes: tuple[str, ...]) -> bool:
    """As gRPC decides: by the end of the name, or the network of an address."""
    return host.endswith(suffixes) or any("/" in suffix and _within(host, suffix) for suffix in suffixes)


def _within(host: str, network: str) -> bool:
    import ipaddress  # noqa: PLC0415 - only where no_proxy names a network

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


_LATE = "InvalidArgumentError deep inside the server's start."
_CHANNEL = "tensorflow/core/distributed_runtime/rpc/grpc_channel.cc"


def _row(
    rule: str,
    message: str,
    consequence: str,
    source: str,
    fix: str = "",
    *,
    severity: Severity = Severity.ERROR,
    find: Callable[[Case], Iterator[Hit]] | None = None,
) -> Rule:
    return Rule(
        id=rule,
        severity=severity,
        message=message,
        find=find or _fault(rule),
        consequence=consequence,
        fix=fix,
        source=source,
    )


_WARNING = Severity.WARNING
_SILENT = "A silent hang: the name does not resolve, and TensorFlow tries for ever."

RULES = (
    _row("address-empty", "An address is empty.", _LATE, f"R31; {_CHANNEL}", 'write "host:port"'),
    _row("address-leading-space", "White space stands before an address.", _SILENT, "R31; measured on TensorFlow 2.21"),
    _row(
        "address-trailing-space",
        "White space stands after an address.",
        "TensorFlow 2.21 overlooks it; other readers do not.",
        "R31; measured on TensorFlow 2.21",
        severity=_WARNING,
    ),
    _row(
        "address-scheme",
        "An address has a scheme such as grpc://.",
        'InvalidArgumentError: Could not interpret "grpc://…" as a host-port pair.',
        f"measured on TensorFlow 2.21; {_CHANNEL}",
    ),
    _row("address-user", "An address has a user name.", "A silent hang: the name does not resolve.", "R15"),
    _row("address-path", "An address has a path.", f"{_LATE[:-1]}: Could not parse port.", f"R15; {_CHANNEL}"),
    _row(
        "address-joined",
        "Several addresses stand in one text.",
        "InvalidArgumentError, or a server on the last port alone.",
        "R18; measured on TensorFlow 2.21",
        "write one text for each address",
    ),
    _row(
        "address-no-port",
        "An address has no port.",
        "InvalidArgumentError: Could not parse port for local server.",
        "measured on TensorFlow 2.21",
    ),
    _row("address-no-host", "An address has no host.", "The others cannot reach it.", "R31", "write the host's name"),
    _row("address-port", "A port is no number.", _LATE, f"R31; {_CHANNEL}", "write a number from 1 to 65535"),
    _row(
        "address-port-zero",
        "A port is 0.",
        "The server takes some free port, and its peers go on dialling port 0: they wait for ever.",
        "R16; R17; measured on TensorFlow 2.21",
        "choose a port; phalanx run does it for you",
    ),
    _row(
        "address-port-range",
        "A port is above 65535.",
        "Accepted, and served at another port: the others wait for ever.",
        "R31; measured on TensorFlow 2.21",
        "write a number from 1 to 65535",
    ),
    _row("address-host", "A host is no name and no address.", _SILENT, "R31", "write the name that the others resolve"),
    _row(
        "address-ipv4",
        "An IPv4 address is none.",
        _SILENT,
        "R31; measured on TensorFlow 2.21",
        "write four numbers from 0 to 255",
    ),
    _row("address-ipv6-bare", "An IPv6 address stands without brackets.", _SILENT, "R30; measured on TensorFlow 2.21"),
    _row(
        "address-ipv6",
        "An IPv6 address: older TensorFlow listens on IPv4 only.",
        "The server binds 0.0.0.0; whether IPv6 reaches it depends on the version and the kernel.",
        "R30; tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc",
        "write names that have A records; with TensorFlow 2.21 and later it works (--tf-version 2.21)",
        severity=_WARNING,
        find=_ipv6(works=False),
    ),
    _row(
        "address-ipv6-works",
        "An IPv6 address, which this TensorFlow serves.",
        "It works, seen on loopback with 2.21.",
        "R30; measured on TensorFlow 2.21",
        severity=Severity.INFO,
        find=_ipv6(works=True),
    ),
    _row(
        "address-underscore",
        "A host name has an underscore.",
        "Some resolvers and Kubernetes refuse such names: then a silent hang.",
        "R31; RFC 952",
        "write a hyphen, if the name is yours",
        severity=_WARNING,
    ),
    _row(
        "address-label-length",
        "A part of a host name is longer than DNS allows.",
        _SILENT,
        "R33; RFC 1035",
        "shorten the job's name",
    ),
    _row("address-name-length", "A host name is longer than DNS allows.", _SILENT, "R33; RFC 1035", "shorten it"),
    _row(
        "address-local-hosts",
        "localhost in a job of several machines.",
        "Each machine dials itself: a silent hang.",
        "R16",
        "write the names by which the machines reach each other",
        find=_local,
    ),
    _row(
        "address-local-mixed",
        "localhost beside real names.",
        "The others dial themselves instead of that machine: a silent hang.",
        "R16",
        "write the machine's name, or localhost everywhere if it is one machine",
        find=_mixed,
    ),
    _row(
        "address-wildcard",
        "0.0.0.0 is where servers listen, not where they are reached.",
        "Each machine dials itself: a silent hang.",
        "R16",
        "write the names by which the machines reach each other",
        find=_wildcard,
    ),
    _row(
        "address-duplicate",
        "Two tasks have the same address.",
        "One of them ends with UnknownError: Could not start gRPC server; the other hangs.",
        "R39; R41; measured on TensorFlow 2.21",
        "give each task a port of its own",
        find=_duplicate,
    ),
    _row(
        "address-alias",
        "Two tasks have the same address under two names.",
        "One of them ends with UnknownError: Could not start gRPC server; the other hangs.",
        "R39; measured on TensorFlow 2.21",
        "give each task a port of its own",
        severity=_WARNING,
        find=_alias,
    ),
    _row(
        "address-unresolved",
        "A host name does not resolve.",
        _SILENT,
        "R34; R44; R45; measured on TensorFlow 2.21",
        "see whether the name is right and DNS ready; asked only where check is given a resolver",
        find=_unresolved,
    ),
    _row(
        "port-privileged",
        "A port below 1024.",
        "UnknownError: Could not start gRPC server, unless the task runs as root.",
        "measured on TensorFlow 2.21",
        "choose a port from 1024 to 32767",
        severity=_WARNING,
        find=_privileged,
    ),
    _row(
        "port-ephemeral",
        "A port in the ephemeral range.",
        "Any outgoing connection may hold it just then: Could not start gRPC server.",
        "R37; measured on TensorFlow 2.21",
        "choose a port from 1024 to 32767",
        severity=_WARNING,
        find=_ephemeral,
    ),
    _row(
        "port-service",
        "A port where another service usually listens.",
        "Where that service runs: UnknownError: Could not start gRPC server.",
        "measured on TensorFlow 2.21",
        "choose another port",
        severity=_WARNING,
        find=_service,
    ),
    _row(
        "proxy",
        "A proxy is set, and no_proxy leaves out hosts of the cluster.",
        "gRPC sends even loopback traffic to the proxy: a silent hang at the start.",
        "R46; measured on TensorFlow 2.21",
        find=_proxy,
    ),
)

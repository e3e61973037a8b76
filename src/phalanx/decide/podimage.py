"""Why a container's image cannot be had, in words for people."""

from __future__ import annotations

import re

#: What registries and runtimes say, and what it means. The first that matches wins.
_REASONS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(
            r"unauthorized|authentication required|authorization failed|403 Forbidden|denied|insufficient_scope"
        ),
        "its registry refuses it",
        "name a pull secret in on.kubernetes.pull_secrets; some registries say the same of an image that is not there",
    ),
    (
        re.compile(r"not found|manifest unknown|does not exist|no such image"),
        "there is no such image or tag",
        "correct `image:` in job.yaml",
    ),
    (
        re.compile(
            r"no such host|server misbehaving|dial tcp|i/o timeout|connection refused|TLS handshake|deadline exceeded"
        ),
        "its registry cannot be reached from the node",
        "look at the node's network and the registry's name",
    ),
    (re.compile(r"x509|certificate"), "its registry's certificate is not trusted by the node", ""),
    (
        re.compile(r"toomanyrequests|rate limit|429"),
        "its registry takes no more requests for now",
        "wait, or log in with a pull secret",
    ),
    (
        re.compile(r"no match for platform|exec format"),
        "it is built for another kind of processor",
        "build the image for the node's platform",
    ),
    (re.compile(r"no space left"), "the node's disk is full", "look at the node's disk"),
)

_TROUBLES = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)


def image_trouble(reason: str, image: str, message: str) -> tuple[str, str] | None:
    """What is said of the pod, and the advice; None where the reason a container waits for is not its image."""
    if reason not in _TROUBLES:
        return None
    name = f"the image {image!r}" if image else "its image"
    if reason == "InvalidImageName":
        return f"cannot start: {image!r} is no name of an image", "correct `image:` in job.yaml"
    if reason == "ErrImageNeverPull":
        advice = "load it into every node, or say `pull: IfNotPresent`"
        return f"cannot start: {name} is not on its node, and may not be pulled", advice
    for pattern, why, advice in _REASONS:
        if pattern.search(message):
            return f"cannot pull {name}: {why}{_quoted(message)}", advice
    return (
        f"cannot pull {name}{_quoted(message) or f': {reason}'}",
        "`kubectl describe pod` shows the registry's answer",
    )


def _quoted(message: str) -> str:
    """The registry's own words; `Back-off pulling image …` says nothing by itself."""
    words = re.sub(r"^Back-off pulling image \S+?(?:: |$)", "", message).removeprefix("ErrImagePull: ")
    return f" ({words})" if words else ""

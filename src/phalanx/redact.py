"""Keeps secrets out of what people see: exact values while output is captured, shapes of credentials in views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

MASK = "***"
_MASK = MASK.encode()


class Masker:
    """Replaces declared secret values in a byte stream by `***`, wherever the chunks are cut.

    The result is that of one replacement over the whole stream: leftmost first, at one place the longest. What is
    held back at the end of a chunk is only what may still become a secret: less than the longest of them.
    """

    def __init__(self, secrets: Sequence[bytes]) -> None:
        """Empty values are ignored."""
        self._secrets = sorted({secret for secret in secrets if secret}, key=lambda secret: (-len(secret), secret))
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be let through now: all of it where there is no secret, without a copy."""
        if not self._secrets:
            return data
        data = self._held + data
        done: list[bytes] = []
        place, hold = 0, self._unfinished(data, 0)
        # A match that begins where a longer or an earlier secret may still come true has to wait for it.
        while (match := self._pattern.search(data, place)) is not None and match.start() < hold:
            done += (data[place : match.start()], _MASK)
            place = match.end()
            if place > hold:
                hold = self._unfinished(data, place)
        done.append(data[place:hold])
        self._held = data[hold:]
        return b"".join(done)

    def flush(self) -> bytes:
        """The end of the stream: what was held back, for nothing can complete it now."""
        held, self._held = self._held, b""
        return self._pattern.sub(_MASK, held) if held else b""

    def _unfinished(self, data: bytes, place: int) -> int:
        """The first place, from `place` on, where a secret begins that the end of the data cuts off; else the end."""
        first = len(data)
        for secret in self._secrets:
            start = max(place, len(data) - len(secret) + 1)
            while (start := data.find(secret[:1], start, first)) >= 0:
                if secret.startswith(data[start:]):
                    first = start
                    break
                start += 1
        return first


def redact(text: str) -> str:
    """`text` with everything that looks like a credential masked: for views, reports and events, never for raw logs.

    Goes by names (`…TOKEN=`, `"password":`, `--api-key x`) and by shapes (AWS, GitHub, GitLab, Google, Hugging Face,
    Slack, JWT, PEM private keys, `user:password@` in addresses). Rather masks a word too many; idempotent.
    """
    low = text.lower()
    if not any(word in low for word in _TELLING):
        return text  # a flood must not cost ten searches a line
    return _search(text)


def tells(text: str) -> bool:
    """Whether a text seems to hold a credential itself: a reference to a variable, as `$TOKEN`, is none."""
    plain = _REFERRED.sub(" ", text)
    return redact(plain) != plain


def _search(text: str) -> str:
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    for pattern in (_ASSIGNED, _OPTION):
        text = pattern.sub(_masked, text)
    return text


def _masked(match: re.Match[str]) -> str:
    value = match["value"]
    quote = value[0] if value[0] in "\"'" else ""
    inner = value.strip(quote) if quote else value
    if _HARMLESS.match(inner) and "pass" not in match["name"].lower():
        return match[0]
    return f"{match['head']}{quote}{MASK}{quote if len(value) > 1 and value.endswith(quote) else ''}"


#: `--token=$TOKEN`, `PASSWORD="${PASSWORD}"`, `--key $(KEY)`: from the name on, or after an option.
_REFERRED = re.compile(
    r"(?:[\w-]+[\"']?[=:][\"']?|(?<!\S)--?[\w-]+[ \t]+[\"']?)?(?:\$\w+|\$\{\w+\}|\$\(\w+\))[\"']?(?=[\s;&|\"')]|\Z)"
)
# Names are matched from the telling word on, whatever stands before it: PGPASSWORD, hfToken, aws_secret_access_key.
_NAME = (
    r"(?i:token|password|passwd|passphrase|secret|credentials?"
    r"|(?:api|access|account|auth|private|secret|signing)[_-]?key)|(?<![A-Za-z0-9])KEY"
)
_VALUE = r"\"(?:[^\"\\\n]|\\.)*(?:\"|$)|'(?:[^'\\\n]|\\.)*(?:'|$)|[^\s\"']\S*"
_ASSIGNED = re.compile(
    rf"(?P<head>(?P<name>{_NAME})\\*[\"']?[ \t]*(?:=|:(?!//))[ \t]*)(?P<value>{_VALUE})", re.MULTILINE
)
_OPTION = re.compile(
    rf"(?P<head>(?<![^\s\"'\[])--?[\w-]*(?P<name>{_NAME})(?:[\"'],)?[ \t]+)(?P<value>(?!-){_VALUE})", re.MULTILINE
)
#: Small numbers, truth values and markup are no secrets: `max_token=128`, `use_auth_token: False`, `eos_token=</s>`.
_HARMLESS = re.compile(
    r"(?:[+-]?[0-9][0-9_.]{0,5}|none|null|true|false|\*\*\*|<[/|\w]+>|\[[A-Z]+\])[,;)}\]]*\Z", re.IGNORECASE
)


def _shapes(patterns: Iterable[tuple[str, str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.DOTALL), replacement) for pattern, replacement in patterns)


#: What every pattern below and above needs, in lower case: without any of these there is nothing to look for.
_TELLING = (
    *("token", "passw", "passphrase", "secret", "credential", "key", "authorization", "bearer", "://"),
    *("akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
    *("aiza", "ya29.", "gocspx-", "hf_", "sk-", "xox", "eyj"),
)
_SHAPES = _shapes(
    (
        (r"(-----BEGIN ((?:[A-Z0-9]+ )*PRIVATE KEY)-----).*?(-----END \2-----|\Z)", rf"\1{MASK}\3"),
        (r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", MASK),
        (r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,}|glpat-[\w-]{20,})", MASK),
        (r"(?<![A-Za-z0-9])(?:AIza[\w-]{35}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,})", MASK),
        (r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{30,}|sk-[\w-]{20,}|xox[abeoprs]-[\w-]{10,})", MASK),
        (r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", MASK),
        (r"((?i:\bauthorization)[\"']?[ \t]*[:=][ \t]*[\"']?(?:\w+[ \t]+)?)[^\s\"',]+", rf"\1{MASK}"),
        (r"((?i:\bbearer)[ \t]+)[\w.~+/-]{16,}=*", rf"\1{MASK}"),
        (r"(://[^\s/:@\"']*:)[^\s/@\"']+(?=@)", rf"\1{MASK}"),
    )
)

"""Who is measured with whom, and when: a tournament, in which no host plays twice in a round. Pure."""

from __future__ import annotations

Round = tuple[tuple[int, int], ...]


def tournament(count: int) -> tuple[Round, ...]:
    """Rounds in which each pair of `count` hosts meets exactly once: N−1 of them, or N where a host sits out each."""
    if count < 2:  # noqa: PLR2004 - a pair
        return ()
    even = count + count % 2
    # The circle method: the last one stays, the others turn around it.
    return tuple(
        tuple(
            (min(pair), max(pair))
            for pair in (
                (turn, even - 1),
                *(((turn + k) % (even - 1), (turn - k) % (even - 1)) for k in range(1, even // 2)),
            )
            if max(pair) < count
        )
        for turn in range(even - 1)
    )


def some(rounds: tuple[Round, ...], most: int) -> tuple[Round, ...]:
    """So many of them at most, evenly spread."""
    if len(rounds) <= most:
        return rounds
    return tuple(rounds[number * len(rounds) // most] for number in range(most))


def ring(count: int) -> tuple[tuple[int, int], ...]:
    """Who sends to whom in a collective: each to the next one, the last to the first."""
    return tuple((number, (number + 1) % count) for number in range(count)) if count > 1 else ()

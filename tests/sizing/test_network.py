"""What measured hosts mean for a training."""

from __future__ import annotations

import dataclasses

import pytest

from phalanx.errors import InputError
from phalanx.network.measured import Link, Machine, Measured, load, save
from phalanx.network.schedule import ring
from phalanx.sizing import network, speed
from phalanx.sizing.given import model

GB, MB = 10**9, 10**6


def measured(count, slow=None, *, usual=110 * MB, memory=None, together=None, alone=None):
    """`slow`: by way, what it carries; what is not named carries the usual."""
    rates = {(a, b): usual for a in range(count) for b in range(count) if a != b} | (slow or {})
    return Measured(
        hosts=tuple(
            Machine(name=f"n{n + 1}", address=f"10.0.0.{n + 1}", memory=(memory or {}).get(n, 64 * GB), cores=8)
            for n in range(count)
        ),
        links=tuple(Link(source=a, target=b, rate=rate, rtt=1e-4) for (a, b), rate in rates.items()),
        ring=tuple((together or {}).get(way, rates[way]) for way in ring(count)),
        alone=alone,
        time=1.8e9,
    )


def both(a, b, rate):
    return {(a, b): rate, (b, a): rate}


def test_a_link_far_below_the_median_is_named_and_the_ring_goes_at_its_rate():
    found = measured(3, both(0, 2, 11 * MB))
    place = network.place(found, 3)
    assert (place.hosts, place.bandwidth, place.ring) == (3, 110 * MB, 11 * MB)
    assert network.reasons(found, place) == (
        "link n1–n3 carries 11.0 MB/s, others 110 MB/s: the ring goes at 11.0 MB/s",  # noqa: RUF001 - as a link is written
    )


def test_one_slow_direction_is_told_from_both():
    assert [one.who for one in network.slow(measured(4, {(3, 1): 5 * MB}))] == ["link n4→n2"]


def test_a_slow_link_beside_the_ring_does_not_slow_it():
    found = measured(4, both(0, 2, 11 * MB))
    place = network.place(found, 4)
    assert place.ring == 110 * MB
    assert network.reasons(found, place)[0].endswith(
        "not in the ring, which goes at 110 MB/s; a ps at its end would wait for it"
    )


@pytest.mark.parametrize("count", [3, 4, 9])
def test_a_host_all_of_whose_links_are_slow_is_named_in_their_place(count):
    last = count - 1
    slow = {way: 10 * MB for n in range(last) for way in ((n, last), (last, n))}
    assert [one.who for one in network.slow(measured(count, slow))] == [f"every link of n{count}"]


def test_two_hosts_have_nothing_to_compare_but_their_directions():
    assert network.slow(measured(2, both(0, 1, 11 * MB))) == ()
    assert [one.who for one in network.slow(measured(2, {(0, 1): 11 * MB}))] == ["link n1→n2"]


def test_the_smallest_host_is_planned_for_and_named():
    found = measured(3, memory={1: 16 * GB})
    place = network.place(found, 3)
    assert place.memory == 16 * GB
    assert network.reasons(found, place) == (
        "n2 has the least memory, 16.0 GB where others have 64.0 GB: all are planned as that",
    )


def test_links_that_are_slow_only_together_share_something():
    found = measured(4, together=dict.fromkeys(ring(4), 30 * MB))
    [said] = network.reasons(found, network.place(found, 4))
    assert said.startswith("all at once links carry 27% of what each does alone, 30.0 MB/s: they share a switch")
    # Half of the hosts at once in each round are slow already: the one that went alone tells.
    [said] = network.reasons(crowded := measured(4, alone=440 * MB), network.place(crowded, 4))
    assert said.startswith("all at once links carry 25% of what each does alone")


def test_a_slow_link_alone_shares_nothing():
    found = measured(2, {(0, 1): 11 * MB})
    assert not [said for said in network.reasons(found, network.place(found, 2)) if "share" in said]


def test_fewer_workers_than_hosts_are_on_the_first_ones():
    found = measured(4, both(2, 3, 11 * MB))
    assert network.place(found, 3).ring == 110 * MB
    assert network.place(found, 4).ring == 11 * MB
    assert network.place(found, 1).ring is None


def test_a_slow_ring_slows_mirrored_workers_and_not_parameter_servers():
    dense = model(parameters="25M", tables=(), optimizer="sgd", batch=256)
    slow, even = (network.place(measured(4, way), 4) for way in (both(0, 1, 11 * MB), {}))
    assert speed.mirrored(dense, slow, 4).exchange > 5 * speed.mirrored(dense, even, 4).exchange
    assert speed.served(dense, slow, 4, 2) == speed.served(dense, even, 4, 2)


def test_one_host_has_memory_and_cores_and_no_links():
    found = dataclasses.replace(measured(2), hosts=measured(2).hosts[:1], links=(), ring=())
    place = network.place(found, 2)
    assert (place.hosts, place.cores, place.bandwidth, place.ring) == (1, 8, None, None)
    assert len(network.lines(found)) == 1


def test_hosts_and_links_are_one_table():
    text = "\n".join(network.lines(measured(3, both(0, 2, 11 * MB), memory={1: 16 * GB})))
    assert text.startswith("hosts:  3 hosts of 8 cores and 16.0 GB to 64.0 GB, measured 20")
    assert (
        "links:  from row to column, a second\n           n1      n2       n3\n  n1        –  110 MB  11.0 MB" in text  # noqa: RUF001 - as a link is written
    )
    assert "worst 11.0 MB/s (n1→n3), median 110 MB/s, best 110 MB/s" in text
    assert "all at once, each to the next: worst 11.0 MB/s (n3→n1)" in text
    assert text.endswith("slow:   link n1–n3: 11.0 MB/s, others 110 MB/s")  # noqa: RUF001 - as a link is written


def test_of_many_hosts_the_table_has_the_ends_and_says_how_many_pairs_stand_for_all():
    whole = measured(20)
    found = dataclasses.replace(whole, links=whole.links[:40])
    text = network.lines(found)
    assert len(text) == 3
    assert text[1].endswith("; 20 of 190 pairs")


def test_what_was_measured_is_kept_whole(tmp_path):
    found = measured(3, both(0, 2, 11 * MB), alone=1.0)
    save(found, tmp_path / "hosts.json")
    assert load(tmp_path / "hosts.json") == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"phalanx_hosts": 2}',
        '{"phalanx_hosts": 1, "hosts": []}',
        "null",
        "WRONG",
        "RATE",
        "RING",
        "NAN",
    ],
)
def test_what_was_not_saved_by_us_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "hosts.json"
    save(measured(2), path)
    whole = path.read_text()
    damaged = {
        "WRONG": whole.replace('"source": 0', '"source": 7'),
        "RATE": whole.replace("110000000", "-1"),
        "RING": whole.replace('"ring": [', '"ring": [5,'),
        "NAN": whole.replace("110000000", "NaN"),
    }
    path.write_text(damaged.get(text, text))
    with pytest.raises(InputError, match=str(path)):
        load(path)

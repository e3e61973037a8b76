"""What is reckoned: bytes of memory, bytes on a link, seconds of a step. Pure."""

from __future__ import annotations

import bisect
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as some

from phalanx.sizing import memory, servers, speed, traffic
from phalanx.sizing.model import Model, Variable
from phalanx.sizing.place import Core
from sizing.models import A_ROW, HERE, MB, GiB, dense, hosts, looked_at, recommender

sizes = some.integers(1, 10**10)
workers = some.integers(1, 64)


@pytest.mark.parametrize(("count", "sent"), [(1, 0), (2, 50 * MB), (4, 75 * MB), (8, 87.5 * MB)])
def test_a_ring_moves_two_n_minus_one_nths_of_the_gradients(count, sent):
    assert traffic.ring(dense(50 * MB), count) == sent


def test_rows_of_a_table_are_gathered_from_all_others():
    model = dataclasses.replace(recommender(touched=1000, batch=1000), spread="worker")
    layers = 8 * MB
    assert traffic.ring(model, 4) == 1.5 * layers + 3 * 1000 * A_ROW
    assert traffic.served(model, 4) == layers + 1000 * A_ROW


def test_workers_that_share_a_batch_touch_their_part_of_the_rows():
    model = recommender(touched=4000, batch=4000)
    assert traffic.sparse(model, 4) == 1000 * A_ROW
    assert traffic.sparse(dataclasses.replace(model, spread="worker"), 4) == 4000 * A_ROW


@given(size=sizes, more=some.integers(0, 10**9), count=workers)
def test_memory_grows_with_the_parameters(size, more, count):
    assert memory.mirrored(dense(size + more), count).bytes >= memory.mirrored(dense(size), count).bytes
    assert memory.server(dense(size + more), count).bytes >= memory.server(dense(size), count).bytes


@given(size=sizes, slots=some.integers(0, 3), count=workers)
def test_slots_are_kept_by_every_worker_or_by_the_servers_together(size, slots, count):
    model = dense(size, slots=slots)
    assert memory.mirrored(model, count).variables == (1 + slots) * size
    assert memory.server(model, count).variables == pytest.approx((1 + slots) * size / count)
    assert memory.served_worker(model, count).variables == 0


def test_pages_that_processes_share_count_once_a_host():
    worker = memory.mirrored(dense(), 2)
    assert memory.host(worker, 2) == 2 * worker.bytes - memory.SHARED


def test_what_a_program_held_on_its_way_counts_where_it_was_more():
    model = dataclasses.replace(looked_at(), highest=5 * GiB)
    assert memory.mirrored(model, 2).bytes == 5 * GiB


@given(size=some.integers(1, 10**9), count=workers, machines=some.integers(1, 16), batch=some.integers(1, 10**5))
def test_efficiency_is_at_most_one(size, count, machines, batch):
    model, place = dense(size, batch=batch), hosts(machines)
    single = speed.alone(model, place)
    for reached in (speed.mirrored(model, place, count), speed.served(model, place, count, 1)):
        assert 0 < speed.efficiency(reached, single, count) <= 1.000001


@given(size=some.integers(1, 10**9), count=some.integers(1, 32))
def test_a_faster_network_never_makes_a_step_longer(size, count):
    slow, fast = hosts(count, bandwidth=1.25e8), hosts(count, bandwidth=1.25e9)
    assert speed.mirrored(dense(size), fast, count).steps >= speed.mirrored(dense(size), slow, count).steps


places = some.builds(
    lambda machines, cores, sent, anew: dataclasses.replace(
        hosts(machines, cores=cores), core=Core(sent=sent, anew=anew)
    ),
    some.integers(1, 16),
    some.integers(1, 64),
    some.floats(1e-10, 1e-8),
    some.floats(0, 1e-8),
)


@given(size=sizes, place=places, count=workers, more=some.integers(1, 16))
def test_more_workers_never_make_a_step_of_the_same_batch_each_shorter(size, place, count, more):
    model = dataclasses.replace(dense(size), spread="worker")
    few, many = (speed.mirrored(model, place, number) for number in (count, count + more))
    assert many.steps <= few.steps * 1.000001
    served, crowded = (speed.served(model, place, number, 1) for number in (count, count + more))
    assert crowded.steps / (count + more) <= served.steps / count * 1.000001


@given(size=sizes, more=some.integers(0, 10**9), place=places, count=workers)
def test_more_gradients_never_make_a_step_shorter(size, more, place, count):
    small, large = (speed.mirrored(dense(number), place, count) for number in (size, size + more))
    assert large.exchange >= small.exchange
    assert large.steps <= small.steps


def test_workers_that_share_cores_share_the_time_to_copy_gradients():
    """Two cores busy with the copies of two workers are as busy for three with half as many again, and more bytes."""
    two, three = (speed.mirrored(dense(200 * MB), HERE, count).exchange for count in (2, 3))
    assert two == pytest.approx((200 * MB * HERE.core.sent + 400 * MB * HERE.core.anew) / speed.KEPT, rel=0.01)
    assert three == pytest.approx(1.5 * (267 * MB * HERE.core.sent + 400 * MB * HERE.core.anew) / speed.KEPT, rel=0.02)


def test_a_pack_that_is_too_large_to_be_kept_is_memory_anew_at_every_step():
    kept, returned = dense(traffic.RETURNED), dense(traffic.RETURNED + 4)
    assert traffic.anew(kept, 2) == kept.dense
    assert traffic.anew(returned, 2) == 2 * returned.dense
    assert traffic.anew(returned, 1) == 0


def test_a_server_more_costs_a_closure_more_and_so_does_a_variable():
    few = Model(variables=tuple(Variable(name=f"v{n}", bytes=4) for n in range(2)), slots=0, batch=1)
    many = Model(variables=tuple(Variable(name=f"v{n}", bytes=4) for n in range(16)), slots=0, batch=1)
    assert speed.served(few, HERE, 2, 2).steps < speed.served(few, HERE, 2, 1).steps
    assert speed.served(many, HERE, 2, 1).steps < speed.served(few, HERE, 2, 1).steps


def test_workers_of_one_host_share_its_cores():
    model = dataclasses.replace(looked_at(), spread="worker")
    two, four = (speed.mirrored(model, HERE, count) for count in (2, 4))
    assert four.compute == pytest.approx(2 * two.compute)


def test_a_step_that_a_person_has_timed_is_taken_for_what_it_takes():
    model = dense(batch=256).timed(0.12, 4)
    assert speed.mirrored(model, hosts(4), 4).compute == pytest.approx(0.12)
    assert speed.alone(model, hosts(1)).examples == pytest.approx(64 / 0.12)


def test_a_timed_step_is_of_each_workers_own_batch_where_they_share_none():
    model = dataclasses.replace(dense(batch=64), spread="worker").timed(0.12, 4)
    assert speed.mirrored(model, hosts(4), 4).compute == pytest.approx(0.12)
    assert speed.alone(model, hosts(1)).steps == pytest.approx(1 / 0.12)


@given(
    tables=some.lists(some.integers(10**6, 10**10), min_size=1, max_size=6),
    layers=some.lists(some.integers(1, 10**6), max_size=6),
    count=some.integers(2, 16),
)
def test_servers_balance_once_tables_are_parted(tables, layers, count):
    variables = [Variable(name=f"t{n}", bytes=size, rows=size, touched=8) for n, size in enumerate(tables)]
    variables += [Variable(name=f"k{n}", bytes=size) for n, size in enumerate(layers)]
    model = Model(variables=tuple(variables), slots=0, batch=8)
    chosen = servers.parted(model, count)
    loads = servers.share(model, chosen)
    assert sum(loads) == pytest.approx(model.bytes)
    assert max(loads) <= max(
        1.6 * model.bytes / count, max(layers, default=0) + 2 * servers.LEAST_PART + model.bytes / count
    )


def test_one_large_variable_on_three_servers_is_told_to_be_parted():
    """R71."""
    model = recommender(rows=4_000_000, slots=0)
    chosen = servers.parted(model, 3)
    assert chosen.uneven > 2.9
    assert chosen.partitioner.startswith("tf.distribute.experimental.partitioners.MinSizePartitioner(min_shard_bytes=")
    assert max(servers.share(model, chosen)) < 1.1 * model.bytes / 3


@given(rows=some.integers(10**6, 10**9), slots=some.integers(0, 2))
def test_so_many_servers_are_named_that_the_table_fits(rows, slots):
    model, place = recommender(rows=rows, slots=slots), hosts(40)
    chosen = servers.fitting(model, place)
    largest = max(servers.share(model, chosen))
    if chosen.count > 1:
        assert memory.server(model, chosen.count, largest=largest).bytes <= 1.03 * memory.usable(place)
        assert memory.server(model, chosen.count - 1).bytes > memory.usable(place)


def test_a_host_with_a_few_bytes_to_spare_does_not_have_billions_of_servers_reckoned():
    model = recommender(rows=10**12)
    process = memory.server(model, 1).process
    room = bisect.bisect(range(2 * process), process, key=lambda one: memory.usable(hosts(1, one)))
    assert servers.fitting(model, hosts(1, room)).count == 10**5

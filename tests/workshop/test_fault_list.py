"""The faults that a launcher must take: each has a test, and this table says which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

_LIST = "e2e/test_fault_list.py::"
_KILLED = (
    _LIST + "test_killed_before_a_step_in_mid_run_and_in_a_save_chief_worker_and_evaluator_come_back",
    _LIST + "test_each_role_of_a_parameter_server_job_is_killed_at_each_moment_and_it_ends_well",
)

#: Entry → the tests that show it; the first is the nearest to a user's day.
FAULTS: dict[str, tuple[str, ...]] = {
    "kill -9 each role before step 1": _KILLED,
    "kill -9 each role in mid-run": (
        *_KILLED,
        "e2e/test_tensorflow.py::test_a_worker_killed_in_mid_run_is_named_and_the_other_is_its_victim",
        "e2e/test_restart.py::test_a_killed_worker_costs_at_most_one_epoch_and_the_result_is_that_of_an_undisturbed_run",
    ),
    "kill -9 each role in a save": _KILLED,
    "kill -9 each role after the chief is done": (
        *_KILLED,
        "lead/test_rendezvous.py::test_success_is_sticky_and_a_later_failure_of_another_changes_nothing",
    ),
    "a worker exits 0 early": (
        _LIST + "test_a_worker_that_exits_0_early_is_the_cause_and_not_the_one_that_waits_for_it",
        _LIST + "test_a_collective_that_one_worker_alone_calls_is_named_and_not_tried_again",
        "decide/test_alone.py::test_one_that_waits_between_steps_for_who_has_ended_after_as_many_calls_a_collective_alone",
        "lead/test_rendezvous.py::test_a_worker_that_left_early_is_the_suspect_of_those_that_waited_for_it",
    ),
    "a worker hangs (SIGSTOP)": (
        "e2e/test_stuck_tensorflow.py::test_a_frozen_worker_is_named_before_tensorflow_itself_notices",
        "e2e/test_stuck_tensorflow.py::test_a_frozen_task_of_a_parameter_server_job_is_named",
    ),
    "a ps is out of memory (137 and the flag)": (
        _LIST + "test_a_ps_that_the_kernel_kills_for_want_of_memory_is_told_from_any_other_kill",
        "agent/test_oomkills.py::test_a_count_that_grew_shortly_before_the_end_is_an_out_of_memory_kill",
        "decide/test_exits.py::test_what_the_kernel_counted_as_out_of_memory_is_said_so",
    ),
    "a port is stolen before it is bound": (
        _KILLED[0],
        "agent/preflight/test_reach.py::test_nobody_else_may_take_the_port_meanwhile",
        "e2e/test_ports.py::test_twenty_tasks_of_one_host_have_twenty_ports",
    ),
    "DNS 40 s late": ("agent/preflight/test_reach.py::test_a_record_that_appears_after_40_seconds_is_no_failure",),
    "one pair is blocked": (
        "lead/test_preflight.py::test_a_blocked_pair_ends_the_run_before_any_task_starts",
        "agent/preflight/test_reach.py::test_a_port_that_swallows_what_is_sent_to_it_times_out",
    ),
    "a proxy is set on one node": (
        _LIST + "test_a_proxy_on_one_node_alone_does_not_get_the_traffic_of_the_cluster",
        "agent/preflight/test_host.py::test_a_proxy_that_would_get_the_clusters_traffic_is_fatal",
    ),
    "one node is without tf-keras": (
        _LIST + "test_a_node_without_tf_keras_is_named_before_tensorflow_starts",
        "decide/test_preflight.py::test_the_host_that_differs_is_the_odd_one_out",
    ),
    "one node has a GPU less": (
        "decide/test_preflight.py::test_the_host_that_differs_is_the_odd_one_out",
        "agent/preflight/test_host.py::test_the_gpus_of_training_tasks_are_told",
    ),
    "the checkpoint folder is not shared": (
        "agent/preflight/test_host.py::test_a_folder_of_each_hosts_own_is_not_shared",
        "lead/test_preflight.py::test_the_leaders_host_writes_the_token_and_the_others_do_not",
    ),
    "the checkpoint folder is read-only": (
        "agent/preflight/test_host.py::test_a_folder_that_cannot_be_made_or_written",
    ),
    "the checkpoint folder is full": ("e2e/test_preflight.py::test_a_checkpoint_folder_without_room_ends_the_run",),
    "an evaluator is endless": (
        _LIST + "test_a_proxy_on_one_node_alone_does_not_get_the_traffic_of_the_cluster",
        "lead/test_rendezvous.py::test_an_evaluator_gets_its_grace_after_success_and_no_more",
    ),
    "exit 1, 2, 126, 127, 134, 137, 139, 143": (
        _LIST + "test_an_exit_code_is_told_with_its_meaning",
        "decide/test_exits.py::test_an_exit_code_has_a_kind",
    ),
    "SIGTERM to the launcher": (
        _LIST + "test_of_two_jobs_at_once_one_is_terminated_and_the_other_does_not_notice",
        "e2e/test_failure.py::test_an_interrupt_stops_all_and_says_so",
    ),
    "two jobs at once on one host": (
        _LIST + "test_of_two_jobs_at_once_one_is_terminated_and_the_other_does_not_notice",
        "e2e/test_ports.py::test_two_runs_racing_over_a_narrow_range_never_share_a_port",
    ),
    "the retry limit is reached": (
        _LIST + "test_when_the_budget_is_spent_the_run_fails_with_one_root_cause",
        "lead/test_restart.py::test_the_budget_is_spent_and_the_cause_says_so",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_the_list_has_a_test_that_exists(fault):
    assert FAULTS[fault]
    for node in FAULTS[fault]:
        path, _, name = node.partition("::")
        found = [one for one in ast.parse((TESTS / path).read_text()).body if getattr(one, "name", "") == name]
        assert found, node
        skips = ("skip", "xfail", "soak")
        marks = [ast.unparse(mark) for one in found for mark in getattr(one, "decorator_list", ())]
        assert node != FAULTS[fault][0] or not any(word in mark for mark in marks for word in skips), node

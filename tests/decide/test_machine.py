"""Whatever happens, in whatever order: what must always hold of a run."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from phalanx import events as ev
from phalanx.decide.next_step import Say, Stop, Wake, next_step
from phalanx.names import TaskId
from phalanx.plan.policies import Policies, Restart
from phalanx.states import RunPhase, RunState, fold

POLICIES = Policies(restart=Restart(max=2, within=100.0))


class RunMachine(RuleBasedStateMachine):
    """A lead without a network: events in any order, decisions carried out at once."""

    tasks = Bundle("tasks")

    @initialize(
        target=tasks, workers=st.integers(1, 4), chief=st.booleans(), ps=st.integers(0, 2), hosts=st.integers(1, 3)
    )
    def begin(self, workers, chief, ps, hosts):
        names = [TaskId("chief", 0)] * chief
        names += [TaskId("worker", i) for i in range(workers)] + [TaskId("ps", i) for i in range(ps)]
        self.now, self.state, self.history, self.alarm = 1000.0, RunState(), [], None
        self.hosts, self.names = hosts, tuple(names)
        leader = names[0]
        self.say(
            ev.RunStarted(
                time=self.now,
                run="r",
                name="r",
                tasks=self.names,
                strategy="ps" if ps else "mwms",
                hosts=hosts,
                leader=leader,
            )
        )
        return self.names

    def say(self, event):
        if self.state.phase.terminal:
            return
        record = ev.Record(seq=self.state.seq + 1, epoch=1, event=event)
        self.history.append(record)
        self.state = fold(self.state, record)
        self.decide()

    def decide(self):
        for _ in range(50):
            actions = next_step(self.state, POLICIES, self.now)
            self.alarm = min((a.at for a in actions if isinstance(a, Wake)), default=None)
            effects = [a for a in actions if not isinstance(a, Wake)]
            if not effects:
                return
            for action in effects:
                event = (
                    action.event
                    if isinstance(action, Say)
                    else ev.StopOrdered(
                        time=self.now,
                        generation=self.state.generation,
                        tasks=action.tasks,
                        grace=action.grace,
                        reason=action.reason,
                    )
                )
                record = ev.Record(seq=self.state.seq + 1, epoch=1, event=event)
                self.history.append(record)
                self.state = fold(self.state, record)
        raise AssertionError("the decisions never come to rest")

    @rule()
    @precondition(lambda self: self.state.phase is RunPhase.JOINING)
    def all_hosts_join_and_are_bound(self):
        for host in range(self.hosts):
            joined = ev.HostJoined(
                time=self.now, host=host, name=f"n{host}", address="a", cpus=1, gpus=0, memory=1, agent_pid=1
            )
            self.say(joined)
        places = tuple(ev.TaskPlace(task=t, host=n % self.hosts, address="a:1") for n, t in enumerate(self.names))
        self.say(ev.GenerationBound(time=self.now, generation=1, places=places))

    @rule()
    @precondition(lambda self: self.state.restart is not None and self.now >= self.state.restart.at)
    def the_next_generation_is_bound(self):
        number = self.state.generation + 1
        places = tuple(ev.TaskPlace(task=t, host=n % self.hosts, address="a:1") for n, t in enumerate(self.names))
        self.say(ev.GenerationBound(time=self.now, generation=number, places=places))

    @precondition(lambda self: self.state.generation > 0)
    @rule(
        late=st.sampled_from([0, 0, 0, 1]),
        pick=st.integers(0, 9),
        kind=st.sampled_from(["start", "refuse", "listen", "zero", "one", "kill"]),
        stopped=st.booleans(),
    )
    def a_task_says_something(self, late, pick, kind, stopped):
        task = self.names[pick % len(self.names)]
        about = {"time": self.now, "task": task, "host": self.state.tasks[task].host or 0}
        about["generation"] = self.state.generation - late
        about["attempt"] = self.state.tasks[task].attempt
        stopped = stopped and self.state.tasks[task].stop_ordered is not None
        match kind:
            case "start":
                self.say(ev.TaskStarted(**about, pid=1))
            case "refuse":
                self.say(ev.TaskNotStarted(**about, message="no"))
            case "listen":
                self.say(ev.TaskListening(**about, port=1))
            case "zero":
                self.say(ev.TaskExited(**about, pid=1, code=0, stopped=stopped))
            case "one":
                self.say(ev.TaskExited(**about, pid=1, code=1, stopped=stopped))
            case "kill":
                self.say(ev.TaskExited(**about, pid=1, signal=9, stopped=stopped))

    @precondition(lambda self: self.state.phase in (RunPhase.STARTING, RunPhase.RUNNING))
    @rule(picks=st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True))
    def several_are_killed_at_once(self, picks):
        for pick in picks:
            self.now += 0.1
            self.a_task_says_something(late=0, pick=pick, kind="kill", stopped=False)

    @rule(host=st.integers(0, 2))
    def a_host_is_lost(self, host):
        if host in self.state.hosts:
            self.say(ev.HostLost(time=self.now, host=host, reason="gone"))

    @rule(host=st.integers(0, 2))
    def a_host_comes_back(self, host):
        if host in self.state.hosts and not self.state.hosts[host].living:
            self.say(
                ev.HostJoined(
                    time=self.now, host=host, name=f"n{host}", address="a", cpus=1, gpus=0, memory=1, agent_pid=2
                )
            )

    @rule(hard=st.booleans())
    def somebody_stops_it(self, hard):
        self.say(ev.StopRequested(time=self.now, by="me", hard=hard))

    @rule()
    @precondition(lambda self: self.alarm is not None)
    def the_alarm_goes_off(self):
        self.now = max(self.now, self.alarm)
        self.decide()

    @rule(seconds=st.floats(0.01, 30))
    def time_passes(self, seconds):
        self.now += seconds
        self.decide()

    @invariant()
    def alarms_lie_in_the_future(self):
        assert self.alarm is None or self.state.phase.terminal or self.alarm > self.now

    @invariant()
    def the_end_is_said_once_and_last(self):
        ends = [n for n, record in enumerate(self.history) if isinstance(record.event, ev.RunEnded)]
        assert len(ends) <= 1
        assert not ends or ends[0] == len(self.history) - 1

    @invariant()
    def a_failure_names_a_cause_and_success_needs_the_leader(self):
        if self.state.phase is RunPhase.FAILED:
            assert self.state.end.cause
            assert self.state.end.exit_code in (1, 2, 3)
        if self.state.phase is RunPhase.SUCCEEDED:
            assert self.state.succeeded is not None
            assert self.state.end.exit_code == 0

    @invariant()
    def nobody_is_told_to_end_after_it_has(self):
        over, generation = set(), 0
        for record in self.history:
            if isinstance(record.event, ev.GenerationBound):
                over, generation = set(), record.event.generation
            if isinstance(record.event, ev.RestartOrdered):
                over -= set(record.event.tasks)
            if getattr(record.event, "generation", generation) != generation:
                continue
            match record.event:
                case ev.TaskExited(task=task) | ev.TaskNotStarted(task=task):
                    over.add(task)
                case ev.StopOrdered(tasks=tasks):
                    assert not over & set(tasks)

    @invariant()
    def when_all_is_over_the_run_has_ended_or_starts_again(self):
        if self.state.generation and self.state.all_over:
            assert self.state.phase.terminal or self.state.restart is not None

    @invariant()
    def restarts_never_exceed_the_budget_and_generations_only_rise(self):
        counted = [(past.ended, past.culprit.kind) for past in self.state.past if past.restart.counted]
        for when, kind in counted:
            assert sum(when - 100 < other <= when for other, alike in counted if alike == kind) <= 2
        bound = [r.event.generation for r in self.history if isinstance(r.event, ev.GenerationBound)]
        assert bound == sorted(set(bound))

    @invariant()
    def who_falls_along_ran_through_the_failure_before_and_so_does_it_once(self):
        renewed, number = set(), 0
        for past in self.state.past:
            if past.restart.along:
                assert past.number == number
                assert past.culprit.task not in renewed
            else:
                renewed, number = set(), past.number
            renewed |= set(past.restart.tasks)


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)

__all__ = ["Stop", "TestRunMachine"]

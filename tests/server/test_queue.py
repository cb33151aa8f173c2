"""The order of work."""

import math

from hypothesis import given
from hypothesis import strategies as st

from warpwright.server.queue import Job, Queue


def job(name, lane="lane", priority=0, deadline=math.inf):
    return Job(name, "session", lane, None, priority, deadline)


def test_priority_then_deadline_then_arrival():
    queue = Queue()
    for one in (job("late", deadline=9), job("plain"), job("soon", deadline=5), job("urgent", priority=2), job("after", deadline=9)):
        queue.add(one)
    assert [queue.take(()).key for _ in range(5)] == ["urgent", "soon", "late", "after", "plain"]
    assert queue.take(()) is None


def test_a_busy_lane_holds_up_its_own_jobs_alone():
    queue = Queue()
    queue.add(job("first", "a", priority=9))
    queue.add(job("second", "b"))
    assert queue.take({"a"}).key == "second"
    assert queue.take({"a"}) is None
    assert queue.take(()).key == "first"


def test_expired_jobs_leave_the_queue():
    queue = Queue()
    queue.add(job("late", deadline=3))
    queue.add(job("early", deadline=1))
    assert [one.key for one in queue.expired(2)] == ["early"]
    assert [one.key for one in queue.waiting] == ["late"]


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([1.0, 2.0, math.inf]), st.sampled_from("abc"))))
def test_every_job_is_taken_once_and_none_before_one_that_should_be(jobs):
    queue = Queue()
    for number, (priority, deadline, lane) in enumerate(jobs):
        queue.add(job(str(number), lane, priority, deadline))
    taken = [queue.take(()) for _ in jobs]
    assert len({one.key for one in taken}) == len(jobs) and queue.take(()) is None
    ranks = [(-one.priority, one.deadline, one.number) for one in taken]
    assert ranks == sorted(ranks)

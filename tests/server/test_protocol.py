"""Requests as clients write them: read, or refused with a reason."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpwright.errors import UsageError
from warpwright.server import protocol

GOOD = {"id": 7, "verb": "evaluate", "task": {"path": "task.py", "options": {"ranks": 4}}, "candidate": {"files": [["a.py", "x = 1"]]}}


def test_a_request_is_read():
    request = protocol.read(json.dumps({**GOOD, "priority": 3, "deadline": 2, "baselines": ["eager"]}).encode())
    assert (request.id, request.verb, request.priority, request.deadline) == (7, "evaluate", 3, 2.0)
    assert request.where.baselines == ("eager",) and request.where.options == (("ranks", 4),) and request.where.path.endswith("/task.py")
    assert request.programs[0].source.text == "x = 1" and request.where.settings().interval == 0.0
    assert protocol.parse({**GOOD, "interval": 0.02}).where.settings().interval == 0.02
    assert protocol.parse({**GOOD, "within": 6}).where.settings().within == 6.0 and protocol.parse(GOOD).where.within == 0.0


def test_a_recipe_is_a_program():
    request = protocol.parse({**GOOD, "candidate": {"actions": ["tile(matmul_3, m=128)"]}})
    assert request.programs[0].to_json() == {"actions": ["tile(matmul_3, m=128)"]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verb": "reboot"}, "verb"),
        ({"verb": None}, "verb"),
        ({"task": 5}, "task"),
        ({"task": {"path": "t", "options": {"a": []}}}, "options"),
        ({"candidate": {}}, "candidate"),
        ({"candidate": {"files": []}}, "files"),
        ({"candidate": {"files": [["a", 1]]}}, "files"),
        ({"candidate": {"actions": ["no action"]}}, "action"),
        ({"candidate": {"files": [["a", "b"]], "language": "perl"}}, "language"),
        ({"priority": "high"}, "priority"),
        ({"priority": True}, "priority"),
        ({"deadline": "soon"}, "deadline"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": 1e9}, "seconds"),
        ({"interval": 2}, "interval"),
        ({"within": -1}, "within"),
        ({"interval": 1e-6}, "interval"),
        ({"interval": float("nan")}, "interval"),
        ({"id": []}, "id"),
    ],
)
def test_nonsense_is_refused_with_a_reason(change, why):
    with pytest.raises(UsageError, match=why):
        protocol.parse({**GOOD, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"candidate": {"text": "x = '\ud800'"}},
        {"candidate": {"files": [["\udfff.py", "x"]]}},
        {"candidate": {"actions": ["tile(\ud800)"]}},
        {"device": "\ud834"},
        {"task": {"path": "t.py", "options": {"\ud800": 1}}},
    ],
)
def test_text_that_no_file_can_hold_is_refused(change):
    with pytest.raises(UsageError, match="half of a surrogate pair"):
        protocol.read(json.dumps({**GOOD, **change}).encode())


def test_all_whole_letters_are_taken():
    assert protocol.parse({**GOOD, "candidate": {"text": "# \u65e5\u672c \U0001f389 \u202e \0"}}).programs[0].text.endswith("\0")


LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(["task", "candidate", "priority", "deadline", "seconds", "device", "baselines", "id", "keep"]), JSON))
def test_whatever_a_field_holds_is_a_request_or_a_usage_error(change):
    with contextlib.suppress(UsageError):
        protocol.parse({**GOOD, **change})


@given(st.binary(max_size=200))
def test_bytes_are_a_request_or_a_usage_error(data):
    protocol.identity(data)
    with pytest.raises(UsageError):
        protocol.read(data)

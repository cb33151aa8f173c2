"""The resident evaluator: one service that keeps what evaluating costs most to begin, for many programs and many clients (docs/serve.md).

    client --socket, JSON lines--> listener -> service (sessions, queue, archive) --pipe, JSON lines--> lane -> Evaluator

A lane is a process that holds the evaluator of one task on one device. The service imports no task and no candidate, and knows no domain and no
target by name.
"""

from warpwright.errors import ServerError
from warpwright.server.client import Client
from warpwright.server.service import Service, Session

__all__ = ["Client", "ServerError", "Service", "Session"]

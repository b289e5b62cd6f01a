"""The server: REST over one service, behind doors that check who knocks.

`app` puts the routes, the table of errors and the security together; `process` is the life of the server's process,
from the lock on the data directory to the last answer. The service itself is the orchestrator's; `service` says what is
asked of it.
"""

"""The server: REST over one service, behind checks of host, origin and token.

`app` puts the routes, the table of errors and the security together; `process` runs the server's process, from the lock
on the data directory to the last answer. The orchestrator implements the service; `service` holds its interface.
"""

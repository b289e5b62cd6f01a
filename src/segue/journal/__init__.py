"""Only door to the store: append, move, read, follow, verify.

The journal is the only truth. Each workflow has its own sequence of events, chained by hashes; a status changes only in
the transaction that appends its event. Everything that must be on disk before a caller is answered is written here, and
secrets are redacted here, before a row is written.

`journal` has the object for all of it; `transaction` the guarded changes of one workflow. Each other module holds one
subject: its queries, its reads (a part of `Journal`) and its changes (a part of `Transaction`).
"""

from segue.journal.chain import Entry
from segue.journal.journal import Journal, open_journal
from segue.journal.memories import MemoryStore
from segue.journal.runtimes import Process
from segue.journal.transaction import Transaction
from segue.journal.workflows import NewWorkflowRow

__all__ = [
    "Entry",
    "Journal",
    "MemoryStore",
    "NewWorkflowRow",
    "Process",
    "Transaction",
    "open_journal",
]

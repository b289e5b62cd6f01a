"""The only door to the store: append, move, read, follow, verify.

The journal is the truth. Each workflow has its own sequence of events, chained by hashes; a status changes only
together with the event that says so, in one transaction. What must be on disk before somebody is answered goes through
here, and secrets are taken out here, before a row is written.
"""

from segue.journal.chain import Entry
from segue.journal.journal import Journal, open_journal
from segue.journal.transaction import NewWorkflowRow, Process, Transaction

__all__ = ["Entry", "Journal", "NewWorkflowRow", "Process", "Transaction", "open_journal"]

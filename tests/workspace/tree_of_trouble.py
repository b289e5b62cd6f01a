"""An agent that starts everything an agent may leave behind, prints the pids, and waits.

With the word `unmarked`, its daemon throws its environment away.
"""

import json
import os
import subprocess
import sys
import time


def daemon() -> int:
    """Forked twice, in a session of its own, with no descriptor of ours."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            os.closerange(0, 64)
            os.execve("/bin/sleep", ["sleep", "1000"], {} if "unmarked" in sys.argv else dict(os.environ))
        os._exit(0)
    os.wait()
    return int(os.read(read, 20))


children = [
    subprocess.Popen(["sleep", "1000"]),
    subprocess.Popen(["sleep", "1000"], process_group=0),
    subprocess.Popen(["sh", "-c", "sleep 1000 & exec sleep 1000"], start_new_session=True),
]
sys.stdout.write(json.dumps([os.getpid(), daemon(), *(child.pid for child in children)]) + "\n")
sys.stdout.flush()
time.sleep(1000)

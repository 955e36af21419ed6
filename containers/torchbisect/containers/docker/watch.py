"""First process of every container: it ends the container when torchbisect has ended.

The engine closes the container's standard input when the connection to torchbisect ends, however that ends. Foreign
code may loop for ever, and there may be no agent, so the first process itself holds that input. It passes what comes
on to the command. The kernel ends all other processes of a container with the first one.

Foreign code can't disturb it. The kernel ignores signals to the first process for which it has no handler, SIGKILL and
SIGSTOP too. It is not dumpable, so its memory and its descriptors are out of reach for others of its user.

Foreign code can stop the command, though, and a command that answers questions would then be silent. So it is looked
at every two seconds, and the container ends once it was found stopped five times, as a process on this machine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Script for ``python -I -S -c``; its arguments are a word and the command. The standard input of the command is passed
#: on for ``open`` and for ``asked``, a command that must not be stopped; it is empty for ``empty``. It reaps zombies,
#: and ends with the exit code of the command, 128 and more for a signal.
WATCH = r"""
import ctypes, os, select, signal, sys, time

PR_SET_DUMPABLE = 4
ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
is_open, is_asked, command = sys.argv[1] != "empty", sys.argv[1] == "asked", sys.argv[2:]
ended, tell = os.pipe()
os.set_blocking(ended, False)
os.set_blocking(tell, False)
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
reader, writer = os.pipe()
child = os.fork()
if not child:
    try:
        signal.set_wakeup_fd(-1)
        for name in (signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        os.dup2(reader if is_open else os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, "{} can't be started: {}\n".format(command[0], error).encode())
    finally:
        os._exit(127)
os.close(reader)
os.set_blocking(writer, False)
def is_stopped():
    with open("/proc/{}/stat".format(child), "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
waiting, looked, stopped = b"", time.monotonic(), 0
while True:
    if is_asked and time.monotonic() - looked >= 2:
        looked, stopped = time.monotonic(), stopped + 1 if is_stopped() else 0
        if stopped >= 5:
            os._exit(137)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(0, 0 if waiting else select.POLLIN)
    if waiting:
        poll.register(writer, select.POLLOUT)
    for place, event in poll.poll(2000 if is_asked else None):
        if place == 0 and event & select.POLLIN:
            waiting = os.read(0, 1 << 16)
            if not waiting:
                os._exit(129)
            if not is_open:
                waiting = b""
        elif place == 0:
            os._exit(129)
        elif place == writer:
            try:
                waiting = waiting[os.write(writer, waiting):]
            except BlockingIOError:
                pass
            except OSError:
                waiting, is_open = b"", False
        else:
            try:
                os.read(ended, 1 << 12)
            except BlockingIOError:
                pass
            while True:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if pid == child:
                    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
                if not pid:
                    break
"""


def under_watch(command: Sequence[str], *, python: str = "python3", stdin: str = "empty") -> dict[str, Any]:
    """Return the options of a container that runs a command under the watch.

    Args:
        python: the Python in the container that runs the watch.
        stdin: what the command reads; see ``WATCH``.
    """
    entrypoint = [python, "-I", "-S", "-c", WATCH]
    return {"entrypoint": entrypoint, "command": [stdin, *command], "stdin_open": True}

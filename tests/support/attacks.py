"""Scripts that attack an agent in a container, and the checks that nothing came of it."""

from __future__ import annotations

import time

from torchbisect.containers.environment import Environment, Environments
from torchbisect.core.repro import Repro, Settings
from torchbisect.pipeline.shared_resources import SharedResources
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.journal import Journal
from torchbisect.probe.judge.classify import find_untestable
from torchbisect.probe.limits import Limits

COMPILED = "import torch\nf = torch.compile(lambda x: x + 1, backend='eager')\nf(torch.ones(2))\n"
LEAVE = """
import ctypes, glob, os, subprocess, sys
names = ("json", "torch", "hashlib", "sitecustomize", "usercustomize", "_torchbisect_agent")
for folder in ("/tmp", "/dev/shm", "/tmp/.local/lib/python3.%d/site-packages" % sys.version_info[1], "/proc/%d/cwd"):
    try:
        os.makedirs(folder, exist_ok=True)
        for name in names: open(os.path.join(folder, name + ".py"), "w").write("raise SystemExit('planted')")
    except OSError: pass
os.makedirs("/tmp/locked/in"); os.chmod("/tmp/locked", 0)
libc = ctypes.CDLL(None)
assert libc.shmget(7, 1 << 20, 0o1600) >= 0 and libc.semget(8, 3, 0o1600) >= 0 and libc.msgget(9, 0o1600) >= 0
assert libc.syscall({"x86_64": 240, "aarch64": 180}[os.uname().machine], b"left", 0o102, 0o600, None) >= 0  # mq_open
for agent in glob.glob("/tmp/a-*"): os.makedirs(agent + "/left")
open(os.path.expanduser("~/.left"), "w").close()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("sleep", ["sleep", "54321"])
    os._exit(0)
os.wait()
"""
LOOK = """
import glob, os, sys
found = [name for name in os.listdir("/tmp") if not name.startswith("a-")] + os.listdir("/dev/shm")
for kind in ("shm", "sem", "msg"): found += open("/proc/sysvipc/" + kind).read().splitlines()[1:]
found += os.listdir("/dev/mqueue") + glob.glob("/tmp/a-*/left")
found += [path for path in sys.path[1:] if os.access(path or ".", os.W_OK)]
for one in glob.glob("/proc/[0-9]*/cmdline"):
    if b"54321" in open(one, "rb").read(): found.append(one)
assert not found, found
"""
REACH = """
import ctypes, os
libc, reached = ctypes.CDLL(None), []
for one in (os.getppid(), 1):
    if libc.ptrace(16, one, None, None) == 0: reached.append(one)
    for name in ("mem", "environ", "maps", *("fd/%d" % number for number in range(32))):
        try: reached.append(open(f"/proc/{one}/{name}", "r+b" if name != "maps" else "rb", buffering=0))
        except OSError: pass
assert not reached, reached
"""
STOPS = (
    "os.kill(os.getppid(), 19)",
    "os.kill(-1, 19)",
    "agent = os.getppid()\nos.fork(), os.fork()\nwhile True: os.kill(agent, 19)",
)
OVER = {
    "too-many-files": "import os\nfor n in range(10 ** 7): os.mknod('/tmp/%d' % n)",
    "too-many-bytes": "file = open('/tmp/x', 'wb')\nwhile True: file.write(bytes(1 << 20))",
    "too-many-processes": "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(1)",
    "too-many-open-files": "import os\nwhile True: os.dup(0)",
}


def check_attacks(environment: Environment) -> None:
    """Check that one run finds nothing of another, reaches nothing of the agent, and meets limits with names."""
    limits = Limits(eager=30.0)
    with Agent(environment, limits) as agent:
        for source in (LEAVE, LOOK, REACH):
            seen = agent.observe(Repro(COMPILED + source), Settings())
            assert (seen.eager.how, seen.compiled.how, seen.differences) == ("finished", "finished", ()), seen
        assert agent.started == 1
        for reason, source in OVER.items():
            seen = agent.observe(Repro(COMPILED + source), Settings())
            untestable = find_untestable(seen)
            assert untestable is not None
            assert untestable.reason == reason, (reason, seen)
        for stop in STOPS:
            begun = time.monotonic()
            assert agent.observe(Repro(f"import os\n{stop}\n"), Settings()).eager.how == "lost"
            assert time.monotonic() - begun < 60  # half of the silence that ends any agent


def check_one_container_for_each_repro(environments: Environments, environment: Environment) -> None:
    """Check that the next repro of a worker gets a container in which no other has run."""
    shared = SharedResources(Journal())
    try:
        first = shared.warm_environment(environments, environment.build).agent
        first.observe(Repro(COMPILED + LEAVE), Settings())
        assert first.started == 1
        shared.end_repro()
        second = shared.warm_environment(environments, environment.build).agent
        seen = second.observe(Repro(COMPILED + LOOK), Settings())
        assert (seen.eager.how, second.started) == ("finished", 2), seen
    finally:
        shared.close()

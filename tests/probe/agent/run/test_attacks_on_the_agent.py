"""Scripts that attack the agent: its stream, its memory, its limits, the files that it reads. It answers as before."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest
from attacked_agent import COMPILED, LIMITS, agrees, ask

from torchbisect.containers.environment import Venv
from torchbisect.probe import agent_stream
from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.classify import find_untestable
from torchbisect.probe.limits import Limits

pytestmark = pytest.mark.torch

# Each attack sets ``reached`` to what it got hold of. The ancestors are the agent, and in a venv torchbisect itself.
ANCESTORS = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
python = sys.executable if os.access(sys.executable, os.X_OK) else "/usr/bin/python3"
reached, ancestors, one = [], [], os.getppid()
while one > 1 and len(ancestors) < 2:
    ancestors.append(one)
    one = int(open(f"/proc/{one}/stat").read().rpartition(")")[2].split()[1])
"""
LINE = """b'{"id": 1, "answer": {}}\\n'"""
ATTACKS = {
    "descriptors": f"""
for one in ancestors:
    for number in range(64):
        try:
            with open(f"/proc/{{one}}/fd/{{number}}", "wb", buffering=0) as file:
                reached.append(file.write({LINE}))
        except OSError: pass
""",
    "links-of-descriptors": """
for one in ancestors:
    for name in ("cwd", "root", "exe", *(f"fd/{number}" for number in range(64))):
        try: reached.append(os.readlink(f"/proc/{one}/{name}"))
        except OSError: pass
""",
    "memory": """
for one in ancestors:
    for mode in ("rb", "r+b"):
        try: reached.append(open(f"/proc/{one}/mem", mode, buffering=0))
        except OSError: pass
""",
    # Root may look at these: they have no secret.
    "maps-and-variables": """
for one in ancestors if os.getuid() else ():
    try: reached += os.listdir(f"/proc/{one}/map_files")
    except OSError: pass
    for name in ("maps", "smaps", "environ", "auxv", "numa_maps"):
        try: reached += [name] * bool(open(f"/proc/{one}/{name}", "rb").read())
        except OSError: pass
""",
    "ptrace": """
for one in ancestors:
    for request in (16, 0x4206):
        if libc.ptrace(request, one, None, None) == 0: reached.append(one); libc.ptrace(17, one, None, None)
""",
    "memory-of-another": """
class Part(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(16)
mine, other = Part(ctypes.addressof(buffer), 16), Part(id(None), 16)
for one in ancestors:
    for call in (libc.process_vm_readv, libc.process_vm_writev):
        if call(one, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0) > 0: reached.append(one)
""",
    "copied-descriptors": """
for one in ancestors:
    pid = libc.syscall(434, one, 0)
    for number in range(64):
        if pid >= 0 and libc.syscall(438, pid, number, 0) >= 0: reached.append(number)
""",
    "another-program": """
code = '''
import os, sys
for one in sys.argv[1:]:
    try: open(f"/proc/{one}/mem", "r+b", buffering=0); print("reached")
    except OSError: pass
    try: print(os.readlink(f"/proc/{one}/fd/1"))
    except OSError: pass
'''
done = subprocess.run([python, "-S", "-c", code, *map(str, ancestors)], capture_output=True, text=True)
reached += done.stdout.split()
""",
    "orphan": """
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        try: open(f"/proc/{ancestors[0]}/mem", "r+b", buffering=0); os.write(writer, b"reached")
        except OSError: pass
    os._exit(0)
os.wait(); os.close(writer); reached += os.read(reader, 9).split()
""",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_agent_is_out_of_reach(attacked: Agent, attack: str) -> None:
    attacked.start()
    started = attacked.started
    seen = ask(attacked, f"{COMPILED}{ANCESTORS}{attack}\nassert not reached, reached\n")
    assert agrees(seen), (seen.eager.raised, seen.notes)
    assert attacked.started == started


OWN = """
import ctypes, os, subprocess, sys
assert open("/proc/self/environ").read() and os.listdir("/proc/self/fd") and open("/proc/self/maps").read()
assert open("/proc/self/mem", "rb", buffering=0)
assert subprocess.run(["cat", "/proc/self/environ"], stdout=-3).returncode == 0
child = subprocess.Popen(["sleep", "100"])
assert os.listdir(f"/proc/{child.pid}/fd")
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(16, child.pid, None, None) == 0, ctypes.get_errno()
child.kill(); child.wait()
import multiprocessing
with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, 2]) == [1, 2]
"""


def test_a_script_reaches_itself_and_its_own_processes(attacked: Agent) -> None:
    seen = ask(attacked, COMPILED + OWN)
    assert agrees(seen), seen.eager


# The key is not in the script, but every form of it is: to search for it leaves no copy of it but in one buffer.
SCAN = """
import ctypes, re
masked, found = bytes.fromhex({masked!r}), []
wanted, block = (ctypes.c_ubyte * len(masked))(), (ctypes.c_ubyte * (1 << 20))()
view, own = memoryview(block).cast("B"), range(ctypes.addressof(wanted), ctypes.addressof(wanted) + len(masked))
libc = ctypes.CDLL(None)
libc.memmem.restype, libc.memmem.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] * 2
begin = ctypes.addressof(block)
with open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in open("/proc/self/maps").read().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if "rw" not in line or "/" in line or end > 1 << 47: continue
        for mask in (0x5A, 0x5A ^ 0x36, 0x5A ^ 0x5C):
            for at in range(len(masked)): wanted[at] = masked[at] ^ mask
            for place in range(start, end, (1 << 20) - 64):
                if place < begin + len(block) and place + (1 << 20) > begin: ctypes.memset(begin, 0, len(block))
                memory.seek(place)
                try: size = memory.readinto(view[: min(1 << 20, end - place)])
                except OSError: break
                at = libc.memmem(begin, size, ctypes.addressof(wanted), len(masked))
                while at:
                    real = place + at - begin
                    if real not in own and not begin <= real < begin + len(block): found.append((mask, line))
                    at = libc.memmem(at + 1, begin + size - at - 1, ctypes.addressof(wanted), len(masked))
assert {expected} == bool(found), found
found.clear()  # addresses differ between the two runs
"""


@pytest.mark.parametrize("of_key", [True, False], ids=["key", "control"])
def test_the_key_is_in_no_memory_of_a_script(installed: Venv, monkeypatch: pytest.MonkeyPatch, of_key: bool) -> None:
    key = os.urandom(32)
    control = "kept = bytearray(masked)\nfor at in range(len(kept)): kept[at] ^= 0x5A\n"
    masked = bytes(byte ^ 0x5A for byte in key).hex()
    scan = SCAN.format(masked=masked, expected=not of_key)
    if not of_key:
        scan = scan.replace("libc = ctypes.CDLL(None)\n", "libc = ctypes.CDLL(None)\n" + control)
    monkeypatch.setattr(agent_stream.secrets, "token_bytes", lambda size: key[:size])
    with Agent(installed, LIMITS) as agent:
        assert agrees(ask(agent, COMPILED))
        seen = ask(agent, COMPILED + scan)
        assert agrees(seen), seen.eager


STOPS = {
    "agent": "import os\nos.kill(os.getppid(), 19)\n",
    "agent-and-itself": "import os\nos.kill(os.getppid(), 19)\nos.kill(os.getpid(), 19)\n",
    "group": "import os\nos.killpg(os.getpgid(os.getppid()), 19)\n",
    "again-and-again": "import os\nagent = os.getppid()\nos.fork()\nwhile True: os.kill(agent, 19)\n",
}


@pytest.mark.parametrize(
    "stop", [pytest.param(STOPS[name], id=name, marks=() if name == "agent" else pytest.mark.long) for name in STOPS]
)
def test_a_stopped_agent_ends_the_question(attacked: Agent, stop: str) -> None:
    attacked.start()
    begun = time.monotonic()
    seen = ask(attacked, COMPILED + stop)
    assert time.monotonic() - begun < 60  # half of the silence that ends any agent
    untestable = find_untestable(seen)
    assert untestable is not None
    assert untestable.reason == "lost"
    assert agrees(ask(attacked, COMPILED))


@pytest.mark.parametrize(
    "stop",
    [
        "os.kill(os.getpid(), 19)",
        "os.killpg(0, 19)",
        "libc.raise_(19)",
        "if os.fork() == 0:\n    while True: os.kill(os.getppid(), 19); time.sleep(0.01)\ntime.sleep(100)",
    ],
)
def test_a_script_that_stops_itself_times_out(attacked: Agent, stop: str) -> None:
    attacked.limits = Limits(eager=2.0, compiled_floor=2.0)
    begun = time.monotonic()
    seen = ask(
        attacked, "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.raise_ = getattr(libc, 'raise')\n" + stop
    )
    attacked.limits = LIMITS
    assert seen.eager.how == "timed-out"
    assert time.monotonic() - begun < 25


CHANGES = {
    "memory": "resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1 << 34, 1 << 34))",
    "processes": "resource.prlimit(os.getppid(), resource.RLIMIT_NPROC, (1, 1))",
    "files": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64))",
    "one-processor": "os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})",
    "priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "idle": "os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
    "idle-disk": "import ctypes\nnumber = {'x86_64': 251, 'aarch64': 30}[os.uname().machine]\n"
    "assert ctypes.CDLL(None).syscall(number, 1, os.getppid(), 3 << 13) == 0",
    # For root only.
    "late-timers": "os.write(os.open(f'/proc/{os.getppid()}/timerslack_ns', os.O_WRONLY), b'999999999999')",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_limits_of_the_agent_reach_no_other_run(attacked: Agent, change: str) -> None:
    seen = ask(attacked, f"{COMPILED}import os, resource\n{change}\n").eager
    assert seen.how == "lost" or ("timerslack" in change and "PermissionError" in seen.errors)
    look = "import os, resource\nprint(resource.getrlimit(resource.RLIMIT_AS), os.getpriority(os.PRIO_PROCESS, 0))\n"
    seen = ask(attacked, COMPILED + look)
    assert agrees(seen)
    assert seen.eager.output == f"(-1, -1) {os.getpriority(os.PRIO_PROCESS, 0)}\n"


LEFT = """
import os, sys
source = "raise SystemExit('planted')"
names = ("json", "torch", "hashlib", "sympy", "_torchbisect_agent", "sitecustomize", "usercustomize", "traceback")
for folder in {folders}:
    for name in names:
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name + ".py"), "w") as file: file.write(source)
        except OSError: pass
"""
FOLDERS = {
    "started-in": "[os.environ['HOME'], '/proc/%d/cwd' % os.getppid()]",
    "user-site": "[os.path.join(os.environ['HOME'], '.local/lib/python%d.%d/site-packages' % sys.version_info[:2])]",
    "temporary": "[os.environ['TMPDIR'], os.path.dirname(os.environ['TMPDIR'])]",
    "working": "[os.getcwd(), os.path.dirname(os.getcwd()), '..', '.']",
}


@pytest.mark.parametrize("folders", FOLDERS.values(), ids=FOLDERS)
def test_the_agent_imports_nothing_that_a_script_leaves(attacked: Agent, folders: str) -> None:
    attacked.start()
    started = attacked.started
    ask(attacked, COMPILED + LEFT.format(folders=folders))
    for source in (
        COMPILED,
        COMPILED.replace("'eager'", "'aot_eager'"),
        COMPILED + "f(torch.ones(3, 3)) @ f(torch.ones(3))",
    ):
        assert agrees(ask(attacked, source)), source
    assert attacked.started == started


def test_no_folder_of_the_path_is_writable_but_that_of_the_script(attacked: Agent) -> None:
    look = "import os, sys\nprint(sys.path[1:], [p for p in sys.path[1:] if not os.path.isabs(p)])\n"
    seen = ask(attacked, COMPILED + look)
    assert seen.eager.output.endswith(" []\n")


OVER = {
    "processes": "import os, time\nfor _ in range(60):\n    if os.fork() == 0: time.sleep(100)\ntime.sleep(100)\n",
    "threads": "import threading\nfor _ in range(99): threading.Thread(target=threading.Event().wait).start()\n",
    "files": "import os\nfor n in range(10 ** 7): open(os.path.join(os.environ['TMPDIR'], str(n)), 'w').close()\n",
    "bytes": "import os\nfile = open(os.path.join(os.environ['TMPDIR'], 'x'), 'wb')\n"
    "while True: file.write(bytes(1 << 20))\n",
}


@pytest.mark.parametrize("limit", OVER)
def test_each_limit_has_a_name(attacked: Agent, limit: str) -> None:
    attacked.limits = Limits(memory=1 << 30, processes=32, tasks=64, files=20_000, bytes=200 << 20)
    seen = ask(attacked, COMPILED + OVER[limit])
    attacked.limits = LIMITS
    untestable = find_untestable(seen)
    assert untestable is not None
    assert (untestable.reason, untestable.detail) == (
        f"too-many-{limit}",
        f"the eager run exceeded the limit on {limit}",
    )


@pytest.mark.parametrize(
    "opens",
    [
        "kept = []\nwhile True: kept.append(open('/dev/null'))",
        "import os\nwhile True: os.dup(0)",
        "import socket\nkept = []\nwhile True: kept.append(socket.socket())",
        "import resource, os\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\nwhile True: os.pipe()",
    ],
)
def test_open_files_have_a_limit(attacked: Agent, opens: str) -> None:
    untestable = find_untestable(ask(attacked, COMPILED + opens))
    assert untestable is not None
    assert untestable.reason == "too-many-open-files"


@pytest.mark.parametrize(
    "mode", ["os.chmod('a', 0)", "os.chmod('a/b', 0o500)", "os.chmod('a/b/c', 0)", "os.symlink('/', 'a/root')"]
)
def test_folders_that_nobody_may_read_are_removed(attacked: Agent, mode: str) -> None:
    leave = "import os\nos.chdir(os.environ['TMPDIR'])\nos.makedirs('a/b/c')\nopen('a/b/c/d', 'w').close()\n" + mode
    look = "import os\nplace = os.path.dirname(os.environ['TMPDIR'])\n"
    look += "print([n for n in os.listdir(place) if n.startswith('r-')])\n"
    ask(attacked, COMPILED + leave)
    assert ask(attacked, COMPILED + look).eager.output.count("'r-") == 1


PLANT = """
import glob, os
found = []
for agent in glob.glob(os.path.join(os.environ["HOME"], "**", "a-*"), recursive=True):
    for name in ("inductor", "triton", "torchinductor_root", "torchinductor_nobody", "torchinductor_torchbisect"):
        os.makedirs(os.path.join(agent, name), exist_ok=True)
        found += os.listdir(os.path.join(agent, name))
print(found)
"""


@pytest.mark.long
def test_the_agent_compiles_in_no_folder_that_a_script_has_made(installed: Venv) -> None:
    with Agent(installed, replace(LIMITS, compiled_floor=90.0)) as agent:
        for backend in ("eager", "inductor", "inductor"):
            seen = ask(agent, COMPILED.replace("'eager'", f"'{backend}'") + PLANT)
            assert agrees(seen), (seen.eager, seen.compiled)
            assert seen.eager.output == seen.compiled.output == "[]\n"

"""Scripts that take more of the machine than a run may, or leave what is hard to remove."""

from __future__ import annotations

import pytest
from attacked_agent import COMPILED, LIMITS, agrees, ask

from torchbisect.probe.agent_client import Agent
from torchbisect.probe.judge.classify import find_untestable
from torchbisect.probe.limits import Limits

pytestmark = pytest.mark.torch

# Two thousand processes, which take longer to end than to start.
BOMBS = {
    "one-group": "import os\nfor _ in range(11): os.fork()\nwhile True: pass\n",
    "own-groups": "import os\nfor _ in range(11):\n    if os.fork() == 0: os.setsid()\nwhile True: pass\n",
    "heirs": "import os\nfor _ in range(5): os.fork()\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()\n",
}


@pytest.mark.long
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_fork_bomb_has_its_name_and_leaves_nothing(attacked: Agent, bomb: str) -> None:
    attacked.start()
    started = attacked.started
    untestable = find_untestable(ask(attacked, COMPILED + bomb))
    assert untestable is not None
    assert untestable.reason in ("too-many-processes", "crashes-in-eager")
    look = "import os\nagent = os.getppid()\nprint(sum(open(f'/proc/{n}/stat').read().rpartition(')')[2].split()[1]"
    look += " == str(agent) for n in os.listdir('/proc') if n.isdigit() and os.path.exists(f'/proc/{n}/stat')))\n"
    assert ask(attacked, COMPILED + look).eager.output == "1\n"
    assert attacked.started == started


# The agent stands still meanwhile, so that its next look finds too many processes and no time left.
UNSEEN_PROCESSES = """
import os, signal, time
agent = os.getppid()
os.kill(agent, signal.SIGSTOP)
script = os.getpid()
for _ in range(16):
    if os.fork() == 0: break
end = time.monotonic() + 2.0
while time.monotonic() < end: pass
if os.getpid() == script: os.kill(agent, signal.SIGCONT)
time.sleep(100)
"""


def test_a_limit_that_is_exceeded_is_named_where_the_time_is_over_too(attacked: Agent) -> None:
    """Where the machine is busy, the first look at a run with too many processes may come when its time is over."""
    attacked.limits = Limits(eager=1.0, processes=8)
    untestable = find_untestable(ask(attacked, UNSEEN_PROCESSES))
    attacked.limits = LIMITS
    assert untestable is not None
    assert untestable.reason == "too-many-processes"


BEYOND_NAMES = {
    "no-name": "import os\nfile = open('x', 'wb')\nos.unlink('x')\nwhile True: file.write(bytes(1 << 20))\n",
    "no-rights": "import os\nos.mkdir('d')\nfile = open('d/x', 'wb')\nos.chmod('d', 0)\n"
    "while True: file.write(bytes(1 << 20))\n",
    "too-deep": "import os\nfor _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
    "file = open('x', 'wb')\nwhile True: file.write(bytes(1 << 20))\n",
}


@pytest.mark.parametrize("source", BEYOND_NAMES.values(), ids=BEYOND_NAMES)
def test_files_that_have_no_path_count(attacked: Agent, source: str) -> None:
    attacked.limits = Limits(memory=1 << 30, bytes=200 << 20)
    untestable = find_untestable(ask(attacked, COMPILED + source))
    attacked.limits = LIMITS
    assert untestable is not None
    assert untestable.reason in ("too-many-bytes", "too-many-files")
    assert agrees(ask(attacked, COMPILED))


PLACES = "import itertools, os\nplaces = [os.environ['HOME'], os.environ['TMPDIR'], os.getcwd()]\n"
IN_SEVERAL_FOLDERS = {
    "bytes-at-home": "file = open(places[0] + '/x', 'wb')\nwhile True: file.write(bytes(1 << 20))\n",
    "bytes-in-three-folders": "files = [open(place + '/x', 'wb') for place in places]\n"
    "for at in range(290): files[at % 3].write(bytes(1 << 20))\nimport time\ntime.sleep(100)\n",
    "bytes-beside-the-agent": "place = os.path.dirname(places[1])\nos.mkdir(place + '/work9')\n"
    "file = open(place + '/work9/x', 'wb')\nwhile True: file.write(bytes(1 << 20))\n",
    "bytes-in-a-cache": "place = os.environ['TORCHINDUCTOR_CACHE_DIR']\nos.makedirs(place, exist_ok=True)\n"
    "file = open(place + '/x', 'wb')\nwhile True: file.write(bytes(1 << 20))\n",
    "bytes-by-children": "for place in places:\n    if os.fork() == 0:\n        file = open(place + '/x', 'wb')\n"
    "        for _ in range(100): file.write(bytes(1 << 20))\n        file.flush()\n        break\n"
    "import time\ntime.sleep(100)\n",
    "files-at-home": "for n in itertools.count(): open(places[0] + '/%d' % n, 'w').close()\n",
    "files-in-three-folders": "for n in range(5400): open(places[n % 3] + '/%d' % n, 'w').close()\n"
    "import time\ntime.sleep(100)\n",
}


FILES = [source for name, source in IN_SEVERAL_FOLDERS.items() if name.startswith("files")]


@pytest.mark.long
@pytest.mark.parametrize("source", IN_SEVERAL_FOLDERS.values(), ids=IN_SEVERAL_FOLDERS)
def test_files_of_all_folders_count_together(attacked: Agent, source: str) -> None:
    attacked.limits = Limits(memory=1 << 30, files=5000, bytes=200 << 20)
    untestable = find_untestable(ask(attacked, COMPILED + PLACES + source))
    attacked.limits = LIMITS
    assert untestable is not None
    assert untestable.reason == ("too-many-files" if source in FILES else "too-many-bytes")
    assert agrees(ask(attacked, COMPILED))


SHARED = {
    "mapped": "import mmap\nkept = []\nfor _ in range(40):\n    one = mmap.mmap(-1, 1 << 26)\n"
    "    one.write(bytes(1 << 26)); kept.append(one)\n",
    "by-processes": "import mmap, os, time\nfor _ in range(8):\n    if os.fork() == 0:\n"
    "        one = mmap.mmap(-1, 320 << 20)\n        one.write(bytes(320 << 20)); time.sleep(100)\n",
    "file-in-memory": "import os\nfile = os.memfd_create('x')\nfor _ in range(40): os.write(file, bytes(1 << 26))\n",
}


@pytest.mark.parametrize("source", SHARED.values(), ids=SHARED)
def test_shared_memory_counts(attacked: Agent, source: str) -> None:
    untestable = find_untestable(ask(attacked, f"{COMPILED}{source}import time\ntime.sleep(100)\n"))
    assert untestable is not None
    assert untestable.reason == "out-of-memory"


def test_memory_that_processes_share_counts_once(attacked: Agent) -> None:
    share = "import mmap, os, time\none = mmap.mmap(-1, 400 << 20)\none.write(bytes(400 << 20))\n"
    share += "made = [os.fork() for _ in range(2)]\nsum(one[::4096])\nif 0 in made: time.sleep(2); os._exit(0)\n"
    share += "for _ in range(2): os.wait()\n"
    seen = ask(attacked, COMPILED + share)
    assert agrees(seen), seen


LOCKS = {
    "home": "os.chmod(os.environ['HOME'], 0)",
    "all": "place = os.environ['TMPDIR']\nwhile 'torchbisect-run-' in place or 'home' in os.path.basename(place):\n"
    "    os.chmod(place, 0); place = os.path.dirname(place)",
    "working": "os.chmod('.', 0); os.chmod('..', 0)",
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_folders_that_a_script_locks_are_open_for_the_next(attacked: Agent, lock: str) -> None:
    ask(attacked, f"{COMPILED}import os\n{lock}\n")
    for _ in range(2):
        seen = ask(attacked, COMPILED + "import os, tempfile\nopen('x', 'w').close()\ntempfile.mkdtemp()\n")
        assert agrees(seen), seen


@pytest.mark.parametrize("place", ["os.environ['HOME']", "os.path.dirname(os.environ['TMPDIR'])"])
def test_what_a_run_leaves_at_home_is_not_there_for_the_next(attacked: Agent, place: str) -> None:
    leave = f"import os\nplace = os.path.join({place}, '.seen')\nprint(os.path.exists(place))\nos.makedirs(place)\n"
    for _ in range(2):
        seen = ask(attacked, COMPILED + leave)
        assert agrees(seen), seen
        assert seen.eager.output == seen.compiled.output == "False\n"


DEEP = "import os\nos.chdir(os.environ[{folder!r}])\nfor _ in range({depth}): os.mkdir({name!r}); os.chdir({name!r})\n"
DEEP += "open('x', 'w').close()\nos.chmod('.', 0)\n"


@pytest.mark.parametrize("folder", ["TMPDIR", "PWD"])
@pytest.mark.parametrize(("name", "depth"), [("d", 3000), ("d" * 200, 60)])
def test_folders_of_any_depth_are_removed(attacked: Agent, folder: str, name: str, depth: int) -> None:
    attacked.start()
    started = attacked.started
    source = DEEP.format(folder=folder, depth=depth, name=name)
    seen = ask(
        attacked, COMPILED + ("import os\nos.environ['PWD'] = os.getcwd()\n" if folder == "PWD" else "") + source
    )
    assert agrees(seen), seen
    look = "import os\nprint(os.listdir(), os.listdir(os.environ['TMPDIR']))\n"
    seen = ask(attacked, COMPILED + look)
    assert agrees(seen), seen
    assert "d" not in seen.eager.output.replace("repro.py", "").replace("torchbisect-", "").split("'")
    assert attacked.started == started

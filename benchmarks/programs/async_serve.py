# torch: 2.8.0
import asyncio
import contextvars
import functools
import threading
import torch
from torch import nn

current = contextvars.ContextVar("current", default="none")


class Retry(Exception):
    def __init__(self, after, *args):
        super().__init__(*args)
        self.after = after


class Pool:
    _lock = threading.Lock()
    _made = {}

    def __class_getitem__(cls, key):
        with cls._lock:
            return cls._made.setdefault(key, cls(key))

    def __init__(self, key):
        self.key, self.free = key, asyncio.Semaphore(2)

    async def __aenter__(self):
        await self.free.acquire()
        return self

    async def __aexit__(self, *problem):
        self.free.release()


class Lookup:
    def __init__(self, rows):
        self.rows = rows

    def text(self, place):
        try:
            return str(self.rows[place])
        except IndexError as problem:
            return f"<{problem}>"


class Head(nn.Module):
    def __init__(self, width, lookup):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.lookup = lookup

    def forward(self, x, place):
        label = self.lookup.text(place)
        return self.linear(x).relu() + len(label)


@functools.cache
def compiled(width):
    torch.manual_seed(width)
    return torch.compile(Head(width, Lookup([1, 2, 3])), backend="eager")


async def handle(name, batch, place):
    token = current.set(name)
    try:
        async with Pool["main"]:
            await asyncio.sleep(0)
            with torch.no_grad():
                out = compiled(batch.shape[-1])(batch, place)
            if out.isnan().any():
                raise Retry(1.0, "nan")
            return name, out.sum().item()
    finally:
        current.reset(token)


async def main():
    batches = [torch.full((2, 4), 0.1 * i) for i in range(1, 4)]
    tasks = [asyncio.create_task(handle(f"r{i}", batch, i + 1)) for i, batch in enumerate(batches)]
    results = {}
    for task in asyncio.as_completed(tasks):
        name, total = await task
        results[name] = total
    for name in sorted(results):
        print(name, round(results[name], 4))


asyncio.run(main())

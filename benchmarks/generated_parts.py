"""Settings, data and models of generated programs.

A word in capitals on a line of its own is a place that other parts fill.

Every part of one kind offers the same names to the others:

- settings: ``settings()`` returns an object with ``width``, ``depth``, ``batch``, ``steps`` and ``lr``;
- data: ``batches(config)`` yields pairs of an input of (batch, time, width) and a target of (batch,);
- blocks: ``Block(width)`` is a module from (batch, width) to (batch, width);
- models: ``Model(config)`` is a module from an input to (batch,).
"""

from __future__ import annotations

SETTINGS = (
    '''
    @dataclasses.dataclass(frozen=True)
    class OptimizerSettings:
        lr: float = 1e-2
        momentum: float = 0.9


    @dataclasses.dataclass(frozen=True)
    class Settings:
        """Everything that a run depends on."""

        width: int = WIDTH
        depth: int = DEPTH
        batch: int = BATCH
        steps: int = STEPS
        optimizer: OptimizerSettings = dataclasses.field(default_factory=OptimizerSettings)

        @property
        def lr(self) -> float:
            return self.optimizer.lr


    def settings() -> Settings:
        return Settings()
    ''',
    """
    def settings():
        parser = argparse.ArgumentParser()
        parser.add_argument("--width", type=int, default=WIDTH)
        parser.add_argument("--depth", type=int, default=DEPTH)
        parser.add_argument("--batch", type=int, default=BATCH)
        parser.add_argument("--steps", type=int, default=STEPS)
        parser.add_argument("--lr", type=float, default=1e-2)
        parser.add_argument("--verbose", action="store_true")
        return parser.parse_args([])
    """,
    """
    class Settings(typing.NamedTuple):
        width: int
        depth: int
        batch: int
        steps: int
        lr: float


    DEFAULTS = {"width": WIDTH, "depth": DEPTH, "batch": BATCH, "steps": STEPS, "lr": 0.05}


    def settings(**changes):
        merged = {**DEFAULTS, **changes}
        unknown = set(merged) - set(Settings._fields)
        if unknown:
            raise KeyError(f"unknown settings: {sorted(unknown)}")
        return Settings(**merged)
    """,
)

DATA = (
    '''
    class Waves(torch.utils.data.Dataset):
        """Sums of sines with a random phase."""

        def __init__(self, count, length, width):
            generator = torch.Generator().manual_seed(7)
            phase = torch.rand(count, 1, width, generator=generator)
            self.values = torch.sin(torch.arange(length).view(1, length, 1) * 0.3 + phase * math.pi)
            self.targets = phase.mean((1, 2))

        def __len__(self):
            return len(self.values)

        def __getitem__(self, index):
            return self.values[index], self.targets[index]


    def batches(config):
        dataset = Waves(config.batch * config.steps, TIME, config.width)
        loader = torch.utils.data.DataLoader(dataset, batch_size=config.batch, shuffle=False)
        for inputs, targets in loader:
            yield inputs, targets
    ''',
    """
    def make_episode(length, width, seed):
        generator = torch.Generator().manual_seed(seed)
        walk = torch.randn(length, width, generator=generator).cumsum(0)
        return walk / (1.0 + walk.abs().max())


    def collate(episodes):
        inputs = torch.stack(episodes)
        return inputs, inputs[:, -1].mean(-1)


    def batches(config):
        seeds = itertools.count(3)
        for _ in range(config.steps):
            yield collate([make_episode(TIME, config.width, next(seeds)) for _ in range(config.batch)])
    """,
    """
    class ReplayMemory:
        def __init__(self, capacity):
            self.items = []
            self.capacity = capacity

        def push(self, item):
            self.items.append(item)
            if len(self.items) > self.capacity:
                self.items.pop(0)

        def sample(self, count):
            chosen = self.items[-count:]
            return torch.stack([item["seen"] for item in chosen]), torch.stack([item["reward"] for item in chosen])


    def batches(config):
        memory = ReplayMemory(capacity=64)
        for step in range(config.steps * config.batch):
            seen = torch.cos(torch.arange(TIME * config.width) * 0.1 + step).view(TIME, config.width)
            memory.push({"seen": seen, "reward": seen.max() - seen.min(), "step": step})
            if (step + 1) % config.batch == 0:
                yield memory.sample(config.batch)
    """,
)

BLOCKS = (
    """
    class Block(nn.Module):
        def __init__(self, width: int, eps: float = 1e-5):
            super().__init__()
            self.norm = nn.LayerNorm(width, eps=eps)
            self.gain = nn.Parameter(torch.ones(width))

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            h = self.norm(hidden) * self.gain
            STATEMENTS
            return torch.tanh(out)
    """,
    '''
    def refine(h, strength=1.0):
        """Refine a matrix of features."""
        STATEMENTS
        return out * strength


    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.project = nn.Linear(width, width)
            self.strength = 0.5

        def forward(self, hidden):
            return hidden + refine(self.project(hidden), strength=self.strength)
    ''',
    '''
    class RefineMixin:
        """What several layers share."""

        scale = 0.5

        def refine(self, h):
            STATEMENTS
            return self.scale * out


    class Block(RefineMixin, nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, hidden):
            mixed = self.inner(hidden)
            return hidden + self.refine(mixed)
    ''',
    """
    REFINERS = {}


    def register(name):
        def wrap(function):
            if name in REFINERS:
                raise ValueError(name)
            REFINERS[name] = function
            return function

        return wrap


    @register("identity")
    def plain(h):
        return h


    @register("refined")
    def refined(h):
        STATEMENTS
        return out


    class Block(nn.Module):
        def __init__(self, width, refiner="refined"):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(width))
            self.refiner = REFINERS[refiner]

        def forward(self, hidden):
            return self.refiner(hidden @ self.weight)
    """,
    """
    def make_refiner(width):
        scale = 1.0 / math.sqrt(width)

        def refiner(h):
            STATEMENTS
            return out * scale

        return refiner


    def make_gate(bias):
        return lambda values: torch.sigmoid(values + bias)


    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.inner = nn.Linear(width, width, bias=False)
            self.refiner = make_refiner(width)
            self.gate = make_gate(0.5)

        def forward(self, hidden):
            gated = self.gate(hidden) * self.inner(hidden)
            return self.refiner(gated) + hidden
    """,
    '''
    class Stacked(nn.Module):
        """Base of layers: subclasses say what happens between the projections."""

        def __init__(self, width):
            super().__init__()
            self.first = nn.Linear(width, width)
            self.last = nn.Linear(width, width)

        def between(self, h):
            raise NotImplementedError

        def forward(self, hidden):
            return self.last(self.between(self.first(hidden)))


    class Block(Stacked):
        def __init__(self, width):
            super().__init__(width)
            self.register_buffer("offset", torch.full((width,), 0.25))

        def between(self, h):
            STATEMENTS
            return out + self.offset
    ''',
)

MODELS = (
    '''
    class Model(nn.Module):
        """Runs a recurrent block over time."""

        def __init__(self, config):
            super().__init__()
            self.encode = nn.Linear(config.width, config.width)
            self.block = Block(config.width)
            self.head = nn.Linear(config.width, 1)

        def forward(self, inputs):
            hidden = torch.zeros(inputs.shape[0], inputs.shape[2])
            outputs, sizes = [], []
            for step in range(inputs.shape[1]):
                hidden = self.block(self.encode(inputs[:, step]) + hidden)
                outputs.append(hidden)
                sizes.append(hidden.abs().mean())
            pooled = torch.stack(outputs, 1).mean(1)
            return self.head(pooled).squeeze(-1) + 0.01 * torch.stack(sizes).sum()
    ''',
    """
    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.block = Block(width)
            self.drop = nn.Dropout(0.0)
            self.norm = nn.LayerNorm(width)

        def forward(self, hidden):
            return self.norm(hidden + self.drop(self.block(hidden)))


    class Encoder(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.layers = nn.ModuleList([Layer(config.width) for _ in range(config.depth)])

        def forward(self, hidden):
            taps = {}
            for number, layer in enumerate(self.layers):
                hidden = layer(hidden)
                taps[f"layer{number}"] = hidden
            return hidden, taps


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.encode = nn.Linear(config.width, config.width)
            self.tower = Encoder(config)
            self.head = nn.Sequential(nn.ReLU(), nn.Linear(config.width, 1))

        def forward(self, inputs):
            hidden, taps = self.tower(self.encode(inputs.mean(1)))
            mixed = sum(taps.values()) / len(taps) + hidden
            return self.head(mixed)[:, 0]
    """,
    """
    class Pool(nn.Module):
        def __init__(self, dim=1):
            super().__init__()
            self.dim = dim

        def forward(self, values):
            return values.amax(self.dim) - values.mean(self.dim)


    def make_body(width, depth):
        parts = [nn.Linear(width, width), nn.ReLU()]
        parts += [Block(width) for _ in range(depth)]
        return nn.Sequential(*parts)


    class Model(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.pool = Pool()
            self.body = make_body(config.width, config.depth)
            self.head = nn.Parameter(torch.randn(config.width) / config.width)
            self.temperature = 2.0

        def encode(self, inputs):
            return self.body(self.pool(inputs))

        def forward(self, inputs):
            scores = self.encode(inputs) @ self.head
            return scores / self.temperature
    """,
)

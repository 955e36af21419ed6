"""The part of generated programs that trains a model, and what they have beside it.

Training compiles ``model`` to ``forward`` at its place ``COMPILE``. An extra has lines for the places ``PREPARE``,
``BEFORE`` an optimizer's step and ``AFTER`` it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

COMPILED = (
    'forward = torch.compile(model, backend="BACKEND")',
    """
    compiler = functools.partial(torch.compile, backend="BACKEND")
    forward = compiler(model)
    """,
    """
    @torch.compile(backend="BACKEND")
    def forward(inputs):
        return model(inputs)
    """,
    """
    model.compile(backend="BACKEND")
    forward = model
    """,
)

TRAINING = (
    """
    def main():
        config = settings()
        torch.manual_seed(3)
        model = Model(config)
        PREPARE
        COMPILE
        optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        history = []
        for step, (inputs, targets) in enumerate(batches(config)):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(forward(inputs), targets)
            loss.backward()
            BEFORE
            optimizer.step()
            scheduler.step()
            history.append(loss.item())
            AFTER
        print("losses", [round(value, 4) for value in history])
        return model


    if __name__ == "__main__":
        main()
    """,
    '''
    class Trainer:
        """Owns the model, its optimizer and what is to be remembered."""

        def __init__(self, config):
            self.config = config
            torch.manual_seed(11)
            model = Model(config)
            COMPILE
            self.model, self.forward = model, forward
            self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
            self.history = []

        def loss(self, inputs, targets):
            error = self.forward(inputs) - targets
            return error.pow(2).mean() + 1e-3 * sum(p.abs().sum() for p in self.model.parameters())

        def fit(self, steps):
            model, optimizer = self.model, self.optimizer
            history = self.history
            PREPARE
            for step, (inputs, targets) in zip(range(steps), batches(self.config)):
                loss = self.loss(inputs, targets)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                BEFORE
                optimizer.step()
                history.append(float(loss.detach()))
                AFTER
            return self


    def main():
        config = settings()
        trainer = Trainer(config).fit(config.steps)
        print(f"last of {len(trainer.history)}: {trainer.history[-1]:.4f}")


    main()
    ''',
    """
    def evaluate(forward, config):
        totals = collections.defaultdict(float)
        for inputs, targets in batches(config):
            outputs = forward(inputs)
            totals["loss"] += (outputs - targets).abs().mean().item()
            totals["count"] += 1
        return totals["loss"] / totals["count"]


    def run(config, epochs=2):
        torch.manual_seed(5)
        model = Model(config)
        optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
        PREPARE
        COMPILE
        history = {"train": [], "valid": []}
        for epoch in range(epochs):
            for step, (inputs, targets) in enumerate(batches(config)):
                loss = nn.functional.smooth_l1_loss(forward(inputs), targets)
                (loss / epochs).backward()
                BEFORE
                if step % 2:
                    optimizer.step()
                    optimizer.zero_grad()
                history["train"].append(loss.item())
                AFTER
            history["valid"].append(evaluate(forward, config))
        return history


    if __name__ == "__main__":
        result = run(settings())
        print({name: [round(value, 3) for value in values] for name, values in result.items()})
    """,
)


@dataclass(frozen=True)
class Extra:
    """Something beside the model: its definitions, and lines for places in the training."""

    definitions: str
    lines: dict[str, str] = field(default_factory=dict)


EXTRAS = (
    Extra(
        '''
        class Meter:
            """A running mean."""

            def __init__(self, decay: float = 0.9):
                self.decay = decay
                self.value: typing.Optional[float] = None

            def update(self, value: float) -> float:
                self.value = value if self.value is None else self.decay * self.value + (1 - self.decay) * value
                return self.value
        ''',
        {"PREPARE": "meter = Meter()", "AFTER": "meter.update(loss.item())"},
    ),
    Extra(
        '''
        class Callback(typing.Protocol):
            def __call__(self, step: int, loss: float) -> None: ...


        class Announcer:
            """Writes a line every few steps."""

            def __init__(self, every: int = 2):
                self.every = every

            def __call__(self, step: int, loss: float) -> None:
                if step % self.every == 0:
                    logging.getLogger("train").debug("step %d: %.4f", step, loss)


        class Stopper:
            def __init__(self, patience: int):
                self.patience, self.best, self.waited = patience, math.inf, 0

            def __call__(self, step: int, loss: float) -> None:
                self.waited = 0 if loss < self.best else self.waited + 1
                self.best = min(self.best, loss)
                if self.waited > self.patience:
                    raise StopIteration
        ''',
        {
            "PREPARE": "callbacks: list[Callback] = [Announcer(), Stopper(patience=99)]",
            "AFTER": "for callback in callbacks:\n    callback(step, loss.item())",
        },
    ),
    Extra(
        """
        @contextlib.contextmanager
        def timed(name, times):
            start = time.perf_counter()
            try:
                yield
            finally:
                times.setdefault(name, []).append(time.perf_counter() - start)
        """,
        {
            "PREPARE": "times = {}",
            "BEFORE": 'with timed("clip", times):\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)',
        },
    ),
    Extra(
        """
        def init_weights(module, gain=0.8):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, gain=gain)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)


        def count_parameters(model):
            return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        """,
        {"PREPARE": 'model.apply(init_weights)\nprint(f"{count_parameters(model)} parameters")'},
    ),
    Extra(
        '''
        class Average:
            """An exponential average of the weights."""

            def __init__(self, model, decay=0.95):
                self.decay = decay
                self.shadow = {name: value.detach().clone() for name, value in model.named_parameters()}

            @torch.no_grad()
            def update(self, model):
                for name, value in model.named_parameters():
                    self.shadow[name].lerp_(value, 1 - self.decay)
        ''',
        {"PREPARE": "average = Average(model)", "AFTER": "average.update(model)"},
    ),
    Extra(
        """
        def logged(function):
            calls = []

            @functools.wraps(function)
            def inner(*args, **kwargs):
                calls.append(len(args) + len(kwargs))
                return function(*args, **kwargs)

            inner.calls = calls
            return inner


        @logged
        def gradient_norm(parameters):
            total = 0.0
            for parameter in parameters:
                if parameter.grad is not None:
                    total += float(parameter.grad.norm()) ** 2
            return math.sqrt(total)
        """,
        {"PREPARE": "norms = []", "BEFORE": "norms.append(gradient_norm(model.parameters()))"},
    ),
    Extra(
        '''
        class Recorder:
            """Keeps the size of each gradient of the parameters."""

            def __init__(self):
                self.seen = {}

            def attach(self, model):
                for name, parameter in model.named_parameters():
                    parameter.register_hook(functools.partial(self.record, name))
                return self

            def record(self, name, grad):
                self.seen[name] = tuple(grad.shape)
        ''',
        {"PREPARE": "recorder = Recorder().attach(model)"},
    ),
    Extra(
        """
        def checkpoint(model, step, keep=2):
            state = {name: value.clone() for name, value in model.state_dict().items()}
            return {"step": step, "state": state, "keep": keep}


        def describe(tensors, depth=0):
            lines = []
            for name, value in tensors.items():
                lines.append("  " * depth + f"{name}: {tuple(value.shape)}")
            return "\\n".join(lines)
        """,
        {"AFTER": 'saved = checkpoint(model, step)\nassert describe(saved["state"])'},
    ),
)

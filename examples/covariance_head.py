"""Train a small network that predicts a Gaussian for each sample: a mean and a full covariance.

The covariance comes from a Cholesky factor whose lower triangle the network fills in. Run it with

    python examples/covariance_head.py

On torch 2.8.0 it stops with an AssertionError as soon as the model is compiled; without ``torch.compile`` it trains.
"""

import argparse
import math
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    """Everything that can be set from outside."""

    inputs: int = 8
    targets: int = 3
    hidden: tuple = (32, 16)
    dropout: float = 0.0
    batch: int = 16
    samples: int = 64
    epochs: int = 2
    learning_rate: float = 1e-3
    jitter: float = 1e-4
    seed: int = 0
    compile: bool = True
    betas: tuple = field(default=(0.9, 0.999))

    @property
    def entries(self) -> int:
        """How many numbers the lower triangle of a ``targets`` by ``targets`` matrix has."""
        return self.targets * (self.targets + 1) // 2


class Encoder(nn.Module):
    """A plain stack of linear layers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        layers = []
        width = config.inputs
        for hidden in config.hidden:
            layers += [nn.Linear(width, hidden), nn.GELU(), nn.Dropout(config.dropout)]
            width = hidden
        self.layers = nn.Sequential(*layers)
        self.width = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class CovarianceHead(nn.Module):
    """Turns features into a mean and the Cholesky factor of a covariance."""

    def __init__(self, width: int, config: Config) -> None:
        super().__init__()
        self.targets = config.targets
        self.jitter = config.jitter
        self.mean = nn.Linear(width, config.targets)
        self.entries = nn.Linear(width, config.entries)
        rows, cols = torch.tril_indices(config.targets, config.targets)
        self.register_buffer("rows", rows)
        self.register_buffer("cols", cols)

    def factor(self, entries: torch.Tensor) -> tuple:
        """Lay the entries into the lower triangle and make the diagonal positive; says what it knows of the result."""
        matrix = torch.zeros(entries.shape[0], self.targets, self.targets, dtype=entries.dtype)
        matrix[:, self.rows, self.cols] = entries
        checks = {"learns": matrix.requires_grad, "size": matrix.shape[-1]}
        diagonal = torch.diagonal(matrix, dim1=-2, dim2=-1)
        positive = nn.functional.softplus(diagonal) + self.jitter
        return matrix - torch.diag_embed(diagonal) + torch.diag_embed(positive), checks

    def forward(self, features: torch.Tensor) -> tuple:
        factor, checks = self.factor(self.entries(features))
        return self.mean(features), factor, checks


class GaussianRegressor(nn.Module):
    """The encoder and the head on top of it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.head = CovarianceHead(self.encoder.width, config)

    def forward(self, x: torch.Tensor) -> tuple:
        return self.head(self.encoder(x))


def negative_log_likelihood(mean: torch.Tensor, factor: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Of ``target`` under a Gaussian with this mean and Cholesky factor, averaged over the batch."""
    residual = (target - mean).unsqueeze(-1)
    white = torch.linalg.solve_triangular(factor, residual, upper=False).squeeze(-1)
    log_determinant = torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    size = target.shape[-1]
    return (0.5 * white.square().sum(-1) + log_determinant + 0.5 * size * math.log(2 * math.pi)).mean()


def make_data(config: Config) -> DataLoader:
    """Targets that are a noisy linear function of the inputs."""
    generator = torch.Generator().manual_seed(config.seed)
    x = torch.randn(config.samples, config.inputs, generator=generator)
    weight = torch.randn(config.inputs, config.targets, generator=generator)
    y = x @ weight + 0.1 * torch.randn(config.samples, config.targets, generator=generator)
    return DataLoader(TensorDataset(x, y), batch_size=config.batch, shuffle=False)


class Meter:
    """A running mean for the log."""

    def __init__(self) -> None:
        self.total = 0.0
        self.count = 0

    def update(self, value: float, weight: int) -> None:
        self.total += value * weight
        self.count += weight

    @property
    def mean(self) -> float:
        return self.total / max(self.count, 1)


def train(config: Config) -> float:
    """Train for some epochs and return the last epoch's mean loss."""
    torch.manual_seed(config.seed)
    model = GaussianRegressor(config)
    step = torch.compile(model) if config.compile else model
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, betas=config.betas)
    loader = make_data(config)
    meter = Meter()
    for epoch in range(config.epochs):
        meter = Meter()
        for x, y in loader:
            optimizer.zero_grad()
            mean, factor, checks = step(x)
            assert checks["learns"], "the factor lost its gradient"
            loss = negative_log_likelihood(mean, factor, y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            meter.update(loss.item(), x.shape[0])
        print(f"epoch {epoch}: loss {meter.mean:.4f}")
    return meter.mean


def parse_arguments() -> Config:
    """Read the command line into a Config."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--targets", type=int, default=Config.targets)
    parser.add_argument("--eager", action="store_true", help="do not compile the model")
    arguments = parser.parse_args()
    return Config(epochs=arguments.epochs, targets=arguments.targets, compile=not arguments.eager)


def main() -> None:
    config = parse_arguments()
    loss = train(config)
    print(f"finished with a loss of {loss:.4f}")


if __name__ == "__main__":
    main()

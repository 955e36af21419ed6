# %% [markdown]
# # Robust feature scaling
# Exported notebook: scale sensor columns by median and MAD, then fit ridge.

# %%
import numpy as np
import torch

rng = np.random.RandomState(5)
N, D = 40, 4


def make_data():
    x = rng.normal(size=(N, D)) * np.array([1.0, 5.0, 0.2, 2.0])
    x[::9, 1] += 60.0
    w = np.array([0.5, -0.1, 2.0, 0.3])
    y = x @ w + 0.01 * rng.normal(size=N)
    return x, y


# %%
def center_of(column):
    return np.median(column)


def spread_of(column, center):
    return np.median(np.abs(column - center)) + 1e-9


def summary(column):
    center = center_of(column)
    spread = spread_of(column, center)
    return center, spread


def summaries(x):
    rows = []
    for j in range(D):
        center, spread = summary(x[:, j])
        rows.append(np.stack([center, spread]))
    return np.stack(rows)


# %%
class RobustScaler:
    def __init__(self, compile_with=None):
        self.stats = None
        self._summaries = summaries
        if compile_with:
            self._summaries = torch.compile(summaries, backend=compile_with)

    def fit(self, x):
        self.stats = self._summaries(x)
        return self

    def transform(self, x):
        center, spread = self.stats[:, 0], self.stats[:, 1]
        return (x - center) / spread

    @property
    def table(self):
        return [tuple(np.round(row, 3).ravel()) for row in self.stats]


# %%
def ridge(x, y, lam=1e-3):
    a = x.T @ x + lam * np.eye(x.shape[1])
    return np.linalg.solve(a, x.T @ y)


def residual(scaler, x, y):
    z = scaler.transform(x)
    w = ridge(z, y)
    return float(np.sqrt(np.mean((z @ w - y) ** 2)))


# %%
x, y = make_data()
reference = RobustScaler().fit(x)
scaler = RobustScaler("eager").fit(x)
print("reference", reference.stats.shape, reference.table)
print("compiled ", scaler.stats.shape, scaler.table)

# %%
print("rms (reference)", round(residual(reference, x, y), 5))
assert scaler.stats.shape == (D, 2), scaler.stats.shape
print("rms (compiled) ", round(residual(scaler, x, y), 5))

# torch: 2.8.0
"""A bandit agent: explores with a soft policy, then is frozen to the greedy one.

Freezing is done on the instance (``agent.choose = agent.greedy``), the class
keeps its default behaviour for the other agents in the population.
"""
import torch

N_ARMS = 5


class Bandit:
    def __init__(self, means):
        self.means = means

    def pull(self, arms, noise):
        return self.means[arms] + 0.05 * noise


class Agent:
    def __init__(self, name, beta):
        self.name = name
        self.beta = torch.tensor(beta)
        self.value = torch.zeros(N_ARMS)
        self.count = torch.zeros(N_ARMS)

    def probabilities(self):
        return torch.softmax(self.value * self.beta, 0)

    def choose(self, u):
        edges = self.probabilities().cumsum(0)
        return torch.searchsorted(edges, u).clamp(max=N_ARMS - 1)

    def greedy(self, u):
        best = self.value.argmax()
        return best.expand(u.shape)

    def freeze(self):
        self.choose = self.greedy
        return self

    def learn(self, arms, rewards):
        for arm, reward in zip(arms.tolist(), rewards.tolist()):
            self.count[arm] += 1
            self.value[arm] += (reward - self.value[arm]) / self.count[arm]


class Population:
    def __init__(self, agents):
        self.agents = {a.name: a for a in agents}
        self.compiled = {}

    def policy(self, name):
        if name not in self.compiled:
            agent = self.agents[name]

            def act(u):
                return agent.choose(u)

            self.compiled[name] = torch.compile(act, backend="eager")
        return self.compiled[name]


def rollout(population, name, bandit, n):
    u = torch.rand(n)
    arms = population.policy(name)(u)
    return arms, bandit.pull(arms, torch.randn(n))


def main():
    torch.manual_seed(11)
    bandit = Bandit(torch.tensor([0.1, 0.3, 0.2, 0.9, 0.4]))
    population = Population([Agent("curious", 1.0)])
    for name, agent in population.agents.items():
        for _ in range(10):
            arms, rewards = rollout(population, name, bandit, 32)
            agent.learn(arms, rewards)
        print(name, "learned", [round(v, 2) for v in agent.value.tolist()])

    for name, agent in population.agents.items():
        agent.freeze()
        arms, rewards = rollout(population, name, bandit, 32)
        used = sorted(set(arms.tolist()))
        print(name, "frozen on", used, "mean reward %.3f" % rewards.mean())
        assert used == [int(agent.value.argmax())], f"{name} still explores: {used}"


main()

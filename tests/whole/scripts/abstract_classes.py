# Abstract base classes and a runtime-checkable protocol choose how a state is advanced.
# expect: compiled>=0.8, traces>=1
from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import torch


@runtime_checkable
class HasEnergy(Protocol):
    def energy(self, x): ...


class Integrator(ABC):
    dt = 0.05

    @abstractmethod
    def force(self, x): ...

    def step(self, x, v):
        half = v + 0.5 * self.dt * self.force(x)
        x = x + self.dt * half
        return x, half + 0.5 * self.dt * self.force(x)


class Spring(Integrator):
    def force(self, x):
        return -4.0 * x

    def energy(self, x):
        return (2.0 * x * x).sum()


class Pendulum(Integrator):
    dt = 0.1

    def force(self, x):
        return -torch.sin(x)


systems = [Spring(), Pendulum()]
states = [(torch.tensor([1.0, 0.5]), torch.zeros(2)) for _ in systems]
energies = []
for step in range(50):
    states = [system.step(x, v) for system, (x, v) in zip(systems, states)]
    for system, (x, v) in zip(systems, states):
        if isinstance(system, HasEnergy):
            energies.append((system.energy(x) + 0.5 * (v * v).sum()).item())
try:
    Integrator()
except TypeError as error:
    print("abstract" in str(error), len(energies), f"{max(energies) - min(energies):.4f}")
print([[f"{value:.4f}" for value in x.tolist()] for x, _ in states])

# SPDX-License-Identifier: MIT
"""The tire by numpy: what ext/tire/README.md says it is, written down a second time and in another way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEP_S = 0.01


@dataclass(frozen=True)
class Tire:
    """Parameters in SI units; stiffness and damping None: the documented defaults."""

    nodes: int
    mass: float = 10.0
    radius: float = 0.3
    height: float = 0.5
    gravity: float = 9.81
    speed: float = 0.0
    stiffness: float | None = None
    damping: float | None = None
    floor: bool = True

    @property
    def options(self) -> list[str]:
        """The engine's options."""
        names = {
            "mass": "mass-nkg",
            "radius": "radius-nm",
            "height": "height-nm",
            "gravity": "gravity-nm-s2",
            "speed": "speed-nm-s",
        }
        words = [f"--{option}={round(getattr(self, name) * 1e9)}" for name, option in names.items()]
        if self.stiffness is not None:
            words.append(f"--stiffness-nn-m={round(self.stiffness * 1e9)}")
        if self.damping is not None:
            words.append(f"--damping-nns-m={round(self.damping * 1e9)}")
        return [f"--nodes={self.nodes}", f"--floor={'on' if self.floor else 'off'}", *words]


def incidence(nodes: int) -> np.ndarray:
    """Spring -> its two ends: the sides, then the spokes."""
    half = nodes // 2
    sides = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    spokes = np.stack([np.arange(half), np.arange(half) + half], axis=1)
    return np.concatenate([sides, spokes])


def largest_eigenvalue(nodes: int) -> float:
    """Of the graph's Laplacian, by brute force."""
    laplacian = np.zeros((nodes, nodes))
    for a, b in incidence(nodes):
        laplacian[a, a] += 1
        laplacian[b, b] += 1
        laplacian[a, b] -= 1
        laplacian[b, a] -= 1
    return float(np.linalg.eigvalsh(laplacian)[-1])


def defaults(tire: Tire) -> tuple[float, float]:
    """Stiffness and damping as the page says."""
    most = 2 * tire.mass / (tire.nodes * STEP_S * largest_eigenvalue(tire.nodes))
    damping = tire.damping if tire.damping is not None else max(most / 2, (tire.stiffness or 0.0) * STEP_S)
    return (tire.stiffness if tire.stiffness is not None else damping / (2 * STEP_S)), damping


def start(tire: Tire) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities, a row a node."""
    angle = 2 * np.pi * np.arange(tire.nodes) / tire.nodes
    right, up = np.cos(angle), np.sin(angle)
    position = np.stack([tire.radius * right, tire.height + tire.radius + tire.radius * up], axis=1)
    return position, tire.speed * np.stack([1 + up, -right], axis=1)


def simulate(tire: Tire, steps: int) -> np.ndarray:
    """x, y, vx, vy of each node after so many steps."""
    springs = incidence(tire.nodes)
    stiffness, damping = defaults(tire)
    position, velocity = start(tire)
    rest = np.linalg.norm(position[springs[:, 1]] - position[springs[:, 0]], axis=1)
    for _ in range(steps):
        apart = position[springs[:, 1]] - position[springs[:, 0]]
        length = np.linalg.norm(apart, axis=1)
        pull = (stiffness * (length - rest) / length)[:, None] * apart + damping * (
            velocity[springs[:, 1]] - velocity[springs[:, 0]]
        )
        force = np.zeros_like(position)
        np.add.at(force, springs[:, 0], pull)
        np.add.at(force, springs[:, 1], -pull)
        acceleration = force * tire.nodes / tire.mass - np.array([0.0, tire.gravity])
        position, velocity = position + STEP_S * velocity, velocity + STEP_S * acceleration
        if tire.floor:
            below = position[:, 1] <= 0
            velocity[below, 1] = np.maximum(velocity[below, 1], 0)
            position[below, 1] = 0
    return np.concatenate([position, velocity], axis=1)

# Sets of visited states and vocabularies decide which rows of a table are updated.
# expect: traces>=1
import torch

torch.manual_seed(42)
table = torch.zeros(12, 3)
visited, frontier = set(), {0}
edges = {k: {(k * 5 + 1) % 12, (k + 3) % 12} for k in range(12)}
rare = frozenset({4, 9})
touched = 0
for step in range(40):
    following = set()
    for node in sorted(frontier):
        table[node] += torch.tensor([1.0, node, step]) * 0.1
        following |= edges[node]
    visited |= frontier
    frontier = {n for n in following - rare if n not in visited} or {step % 12}
    if len(visited) == 10:
        visited.clear()
    touched += len(frontier & {1, 2, 3}) + (rare <= visited) + (not frontier.isdisjoint(rare))
print(sorted(visited), touched, [f"{v:.3f}" for v in table.sum(0).tolist()], table[4].tolist())

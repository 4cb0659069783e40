# A replay memory class with __contains__, __iter__ and __len__ feeds Q-learning on a small chain world.
# expect: compiled>=0.75, traces>=1
import random

import torch


class Memory:
    def __init__(self, capacity):
        self.items, self.capacity, self.keys = [], capacity, set()

    def push(self, item):
        if len(self.items) == self.capacity:
            self.keys.discard(self.items.pop(0)[:2])
        self.items.append(item)
        self.keys.add(item[:2])

    def __contains__(self, key):
        return key in self.keys

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items[-4:])


random.seed(0)
torch.manual_seed(64)
q = torch.zeros(6, 2)
memory = Memory(20)
state, repeated = 0, 0
for step in range(80):
    action = int(q[state].argmax()) if random.random() > 0.3 else random.randrange(2)
    following = min(state + 1, 5) if action else max(state - 1, 0)
    repeated += (state, action) in memory
    memory.push((state, action, float(following == 5), following))
    for s, a, reward, n in memory:
        q[s, a] += 0.3 * (reward + 0.9 * q[n].max() - q[s, a])
    state = 0 if following == 5 else following
print(len(memory), repeated, [[round(v, 3) for v in row] for row in q.tolist()])

# Recurrent networks: the layers, the cells, loops written by hand, packed and carried states.
from torch.nn.utils import rnn as rnn_utils

features, hidden = 6, 10
sequence = torch.randn(6, 3, features)
target = torch.randn(3, 2)

# %% lstm_classifier
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, 4)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return self.fc(out[:, -1, :])


net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x, labels = torch.randn(10, 3, 7, features), torch.randint(0, 4, (10, 3))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        outputs = net(x[i % 10])
        loss = F.cross_entropy(outputs, labels[i % 10])
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(f"{loss.item():.4f}", outputs.argmax(1).tolist())

# %% gru_bidirectional
gru = nn.GRU(features, hidden, bidirectional=True)
head = nn.Linear(2 * hidden, 2)
opt = torch.optim.SGD(list(gru.parameters()) + list(head.parameters()), lr=0.02)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        out, h = gru(sequence[:4].roll(i, 0))
        both = torch.cat((h[-2], h[-1]), dim=1)
        loss = F.mse_loss(head(both), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), out.shape, h.shape)

# %% rnn_relu_stateful_detach
net = nn.RNN(features, hidden, nonlinearity="tanh")
readout = nn.Linear(hidden, features)
params = [*net.parameters(), *readout.parameters()]
opt = torch.optim.SGD(params, lr=0.01)
text = torch.randn(STEPS * 4 + 1, 3, features)
for epoch in range(EPOCHS):
    state = torch.zeros(1, 3, hidden)
    for start in range(0, len(text) - 1, 4):
        state = state.detach()
        out, state = net(text[start:start + 4], state)
        loss = F.mse_loss(readout(out), text[start + 1:start + 5])
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        opt.step()
    mark()
print(loss.item(), state.abs().mean().item())

# %% lstm_cell_loop
cell, fc = nn.LSTMCell(features, hidden), nn.Linear(hidden, 2)
opt = torch.optim.SGD([*cell.parameters(), *fc.parameters()], lr=0.02)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = c = torch.zeros(3, hidden)
        outputs = []
        for t in range(1, sequence.size(0)):
            h, c = cell(sequence[t], (h, c))
            outputs.append(fc(h))
        loss = F.mse_loss(torch.stack(outputs).mean(0), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), len(outputs), h.sum().item())

# %% gru_cell_generation
cell, fc = nn.GRUCell(5, hidden), nn.Linear(hidden, 5)


@torch.no_grad()
def generate(token, length):
    h, found = torch.zeros(1, hidden), []
    while len(found) < length:
        h = cell(F.one_hot(token, 5).float(), h)
        token = fc(h).argmax(dim=-1)
        found.append(token.item())
    return found


counts = [0] * 5
for epoch in range(EPOCHS):
    for i in range(STEPS):
        for token in generate(torch.tensor([i % 5]), 6):
            counts[token] += 1
    mark()
print(counts, sum(counts))

# %% elman_by_hand
class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, line, hidden):
        hidden = torch.tanh(self.i2h(torch.cat((line, hidden), 1)))
        return self.h2o(hidden), hidden

    def init_hidden(self, n):
        return torch.zeros(n, self.hidden_size)


net = RNN(features, hidden, 2)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = net.init_hidden(3)
        net.zero_grad()
        for x in sequence:
            y, h = net(x, h)
        loss = F.mse_loss(y, target)
        loss.backward()
        for p in net.parameters():
            p.data.add_(p.grad.data, alpha=-0.001)
    mark()
print(loss.item(), y.sum())

# %% lstm_by_hand_gates
w = torch.randn(features + hidden, 4 * hidden) * 0.2
b = torch.zeros(4 * hidden)
w.requires_grad_(True), b.requires_grad_(True)


def lstm_step(x, state):
    h, c = state
    i, f, g, o = (torch.cat([x, h], 1) @ w + b).split(hidden, dim=1)
    c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


for epoch in range(EPOCHS):
    for i in range(STEPS):
        state = torch.zeros(3, hidden), torch.zeros(3, hidden)
        for x in sequence.unbind(0):
            state = lstm_step(x, state)
        loss = (state[0][:, :2] - target.clamp(-1, 1)).pow(2).sum()
        gw, gb = torch.autograd.grad(loss, (w, b))
        with torch.no_grad():
            w -= 0.01 * gw
            b -= 0.01 * gb
    mark()
print(loss.item(), w.norm().item())

# %% packed_sequences
rows = [torch.randn(n, features) for n in (7, 5, 2)]
lengths = [len(row) for row in rows]
lstm, head = nn.LSTM(features, hidden, batch_first=True), nn.Linear(hidden, 2)
opt = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.02)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        padded = rnn_utils.pad_sequence(rows, batch_first=True)
        packed = rnn_utils.pack_padded_sequence(padded, lengths, batch_first=True)
        out, (h, c) = lstm(packed)
        out, sizes = rnn_utils.pad_packed_sequence(out, batch_first=True)
        loss = F.mse_loss(head(h[-1]), target) + 0.01 * out.pow(2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), sizes.tolist(), out.shape)

# %% seq2seq_teacher_forcing
encoder, decoder = nn.GRU(features, hidden), nn.GRUCell(features, hidden)
out = nn.Linear(hidden, features)
net = nn.ModuleList([encoder, decoder, out])
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
goal = sequence.flip(0)[:2].tanh()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        _, h = encoder(sequence[:4])
        h, x, loss = h.squeeze(0), torch.zeros(3, features), 0.0
        for t in range(len(goal)):
            h = decoder(x, h)
            guess = out(h)
            loss = loss + F.mse_loss(guess, goal[t])
            x = goal[t] if (i + t) % 2 == 0 else guess.detach()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item() / len(goal), guess.shape)

# %% carried_hidden_dict_at_inference
class Stream:
    def __init__(self, users):
        self.cell = nn.GRUCell(features, hidden).eval()
        self.memory = {user: torch.zeros(1, hidden) for user in users}
        self.seen = dict.fromkeys(users, 0)

    def feed(self, user, x):
        self.memory[user] = self.cell(x, self.memory[user])
        self.seen[user] += 1
        return self.memory[user].mean()


stream = Stream(["ann", "bob", "cy"])
with torch.no_grad():
    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for i in range(STEPS):
            for k, user in enumerate(stream.memory):
                total += stream.feed(user, sequence[i % 6, k:k + 1])
        mark()
print(total, stream.seen)

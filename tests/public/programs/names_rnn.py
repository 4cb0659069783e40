"""Names classified, then made, letter by letter with plain recurrent cells and hand-written updates, after PyTorch's character-level tutorials."""

import random
import string

import torch
import torch.nn as nn

all_letters = string.ascii_lowercase + "'-"
n_letters = len(all_letters) + 1
STYLES = {"nord": ("b sk th st ei".split(), "or ul en ei a".split(), "son sen ur".split()), "sur": ("ma lo ca ri be".split(), "ri na le to".split(), "o ini ella a".split()),
          "ost": ("iv dm pa ko zo".split(), "an or el ish".split(), "ov enko ski".split())}


def make_names(count):
    lines = {}
    for category, (begins, middles, ends) in STYLES.items():
        lines[category] = [random.choice(begins) + random.choice(middles) + random.choice(ends) for _ in range(count)]
    return lines


def line_to_tensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class Classifier(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h, self.h2h, self.h2o = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


class Maker(nn.Module):
    def __init__(self, n_categories, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(n_categories + input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(n_categories + input_size + hidden_size, output_size)
        self.o2o = nn.Linear(hidden_size + output_size, output_size)
        self.dropout, self.softmax = nn.Dropout(0.1), nn.LogSoftmax(dim=1)

    def forward(self, category, input, hidden):
        input_combined = torch.cat((category, input, hidden), 1)
        hidden, output = self.i2h(input_combined), self.i2o(input_combined)
        output = self.dropout(self.o2o(torch.cat((hidden, output), 1)))
        return self.softmax(output), hidden

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


def train_classifier(rnn, criterion, category, line, learning_rate=0.02):
    hidden = rnn.init_hidden()
    rnn.zero_grad()
    tensor = line_to_tensor(line)
    for i in range(tensor.size()[0]):
        output, hidden = rnn(tensor[i], hidden)
    loss = criterion(output, torch.tensor([category]))
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return output, loss.item()


def one_hot(index, count):
    tensor = torch.zeros(1, count)
    tensor[0][index] = 1
    return tensor


def train_maker(rnn, criterion, category_tensor, line, learning_rate=0.01):
    target = torch.LongTensor([all_letters.find(letter) for letter in line[1:]] + [n_letters - 1]).unsqueeze(-1)
    hidden = rnn.init_hidden()
    rnn.zero_grad()
    loss = torch.Tensor([0])
    tensor = line_to_tensor(line)
    for i in range(tensor.size(0)):
        output, hidden = rnn(category_tensor, tensor[i], hidden)
        loss += criterion(output, target[i])
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return loss.item() / tensor.size(0)


def sample(rnn, category, start_letter, max_length=12):
    with torch.no_grad():
        category_tensor, input, hidden = one_hot(category, len(STYLES)), line_to_tensor(start_letter), rnn.init_hidden()
        output_name = start_letter
        for i in range(max_length):
            output, hidden = rnn(category_tensor, input[0], hidden)
            topv, topi = output.topk(1)
            topi = topi[0][0]
            if topi == n_letters - 1:
                break
            letter = all_letters[topi]
            output_name += letter
            input = line_to_tensor(letter)
        return output_name


random.seed(7)
torch.manual_seed(7)
names, categories = make_names(40), list(STYLES)
rnn, criterion = Classifier(n_letters, 32, len(categories)), nn.NLLLoss()
total = 0
for iter in range(1, 301):
    category = random.randrange(len(categories))
    line = random.choice(names[categories[category]])
    output, loss = train_classifier(rnn, criterion, category, line)
    total += loss
    if iter % 50 == 0:
        guess = categories[output.topk(1)[1][0].item()]
        print("%d loss %.4f %s / %s %s" % (iter, total / 50, line, guess, "right" if guess == categories[category] else "wrong (%s)" % categories[category]))
        total = 0
confusion = torch.zeros(len(categories), len(categories))
with torch.no_grad():
    for _ in range(100):
        category = random.randrange(len(categories))
        hidden = rnn.init_hidden()
        for letter in line_to_tensor(random.choice(names[categories[category]])):
            output, hidden = rnn(letter, hidden)
        confusion[category][output.argmax()] += 1
print("confusion", (confusion / confusion.sum(1, keepdim=True)).round(decimals=2).tolist())
maker, total = Maker(len(categories), n_letters, 32, n_letters), 0
for iter in range(1, 251):
    category = random.randrange(len(categories))
    total += train_maker(maker, criterion, one_hot(category, len(categories)), random.choice(names[categories[category]]))
    if iter % 50 == 0:
        print("%d %d%% %.4f" % (iter, iter / 250 * 100, total / 50))
        total = 0
maker.eval()
for category in range(len(categories)):
    print(categories[category], [sample(maker, category, letter) for letter in "bms"])

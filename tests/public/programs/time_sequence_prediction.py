"""Sine waves foretold by two LSTM cells in double precision with LBFGS, after pytorch/examples' time_sequence_prediction."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

torch.set_default_dtype(torch.float64)


class Sequence(nn.Module):
    def __init__(self):
        super(Sequence, self).__init__()
        self.lstm1 = nn.LSTMCell(1, 17)
        self.lstm2 = nn.LSTMCell(17, 17)
        self.linear = nn.Linear(17, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t, c_t = torch.zeros(input.size(0), 17, dtype=torch.double), torch.zeros(input.size(0), 17, dtype=torch.double)
        h_t2, c_t2 = torch.zeros(input.size(0), 17, dtype=torch.double), torch.zeros(input.size(0), 17, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    opt = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    T, L, N = 10, 48, 12
    x = np.empty((N, L), "int64")
    x[:] = np.array(range(L)) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
    data = np.sin(x / 1.0 / T).astype("float64")
    input, target = torch.from_numpy(data[3:, :-1]), torch.from_numpy(data[3:, 1:])
    test_input, test_target = torch.from_numpy(data[:3, :-1]), torch.from_numpy(data[:3, 1:])
    seq = Sequence()
    seq.double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.6, max_iter=8)
    for i in range(opt.steps):
        print("STEP: ", i)

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            print("loss: %.6f" % loss.item())
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            future = 20
            pred = seq(test_input, future=future)
            loss = criterion(pred[:, :-future], test_target)
            print("test loss: %.6f" % loss.item())
            y = pred.detach().numpy()
        print("future", np.round(y[0, -future::5], 3).tolist())

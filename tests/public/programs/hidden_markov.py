"""A hidden Markov model learned by gradients through the forward algorithm in logarithms, with Viterbi and sampling, after pytorch_HMM."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from synthetic import sentences


class TransitionModel(nn.Module):
    def __init__(self, N):
        super().__init__()
        self.N = N
        self.unnormalized_transition_matrix = nn.Parameter(torch.randn(N, N))

    def forward(self, log_alpha):
        log_transition_matrix = F.log_softmax(self.unnormalized_transition_matrix, dim=0)
        return log_domain_matmul(log_transition_matrix, log_alpha.transpose(0, 1)).transpose(0, 1)

    def maxmul(self, log_alpha):
        log_transition_matrix = F.log_softmax(self.unnormalized_transition_matrix, dim=0)
        values, indices = torch.max(log_transition_matrix.unsqueeze(2) + log_alpha.transpose(0, 1).unsqueeze(0), dim=1)
        return values.transpose(0, 1), indices.transpose(0, 1)


class EmissionModel(nn.Module):
    def __init__(self, N, M):
        super().__init__()
        self.unnormalized_emission_matrix = nn.Parameter(torch.randn(N, M))

    def forward(self, x_t):
        return F.log_softmax(self.unnormalized_emission_matrix, dim=1)[:, x_t].transpose(0, 1)


def log_domain_matmul(log_A, log_B):
    """C with C[i, j] = log sum over k of exp(A[i, k] + B[k, j])."""
    return torch.logsumexp(log_A.unsqueeze(2) + log_B.unsqueeze(0), dim=1)


class HMM(nn.Module):
    def __init__(self, M, N):
        super().__init__()
        self.M, self.N = M, N
        self.transition_model, self.emission_model = TransitionModel(N), EmissionModel(N, M)
        self.unnormalized_state_priors = nn.Parameter(torch.randn(N))

    def forward(self, x, T):
        batch_size, T_max = x.shape
        log_state_priors = F.log_softmax(self.unnormalized_state_priors, dim=0)
        log_alpha = torch.zeros(batch_size, T_max, self.N)
        log_alpha[:, 0, :] = self.emission_model(x[:, 0]) + log_state_priors
        for t in range(1, T_max):
            log_alpha[:, t, :] = self.emission_model(x[:, t]) + self.transition_model(log_alpha[:, t - 1, :])
        log_sums = log_alpha.logsumexp(dim=2)
        return torch.gather(log_sums, 1, T.view(-1, 1) - 1)

    def viterbi(self, x, T):
        batch_size, T_max = x.shape
        log_state_priors = F.log_softmax(self.unnormalized_state_priors, dim=0)
        log_delta, psi = torch.zeros(batch_size, T_max, self.N), torch.zeros(batch_size, T_max, self.N, dtype=torch.long)
        log_delta[:, 0, :] = self.emission_model(x[:, 0]) + log_state_priors
        for t in range(1, T_max):
            max_val, argmax_val = self.transition_model.maxmul(log_delta[:, t - 1, :])
            log_delta[:, t, :] = self.emission_model(x[:, t]) + max_val
            psi[:, t, :] = argmax_val
        paths = []
        for i in range(batch_size):
            z = [log_delta[i, T[i] - 1].argmax().item()]
            for t in range(T[i] - 1, 0, -1):
                z.insert(0, psi[i, t, z[0]].item())
            paths.append(z)
        return paths

    def sample(self, T=20):
        priors = F.softmax(self.unnormalized_state_priors, dim=0)
        transition = F.softmax(self.transition_model.unnormalized_transition_matrix, dim=0)
        emission = F.softmax(self.emission_model.unnormalized_emission_matrix, dim=1)
        z_t = torch.distributions.categorical.Categorical(priors).sample().item()
        z, x = [], []
        for t in range(T):
            z.append(z_t)
            x.append(torch.distributions.categorical.Categorical(emission[z_t]).sample().item())
            z_t = torch.distributions.categorical.Categorical(transition[:, z_t]).sample().item()
        return x, z


torch.manual_seed(3)
words = sorted(set(sentences(300, seed=6).replace(".", "").split()))
letters = sorted(set("".join(words)))
encoded = [torch.tensor([letters.index(c) for c in word]) for word in words]
longest = max(map(len, encoded))
x = torch.stack([F.pad(word, (0, longest - len(word))) for word in encoded])
T = torch.tensor([len(word) for word in encoded])
model = HMM(len(letters), 6)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(40):
    total = 0.0
    for batch in torch.randperm(len(x)).split(24):
        log_probs = model(x[batch], T[batch])
        loss = -log_probs.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    if epoch % 8 == 7:
        sampled, states = model.sample(12)
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f} sample {''.join(letters[k] for k in sampled)}")
with torch.no_grad():
    for word, path in zip(words[:4], model.viterbi(x[:4], T[:4])):
        print(word, path)

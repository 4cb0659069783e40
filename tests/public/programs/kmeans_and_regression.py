"""Clustering by k-means and by a Gaussian mixture, linear and logistic regression by hand, as notebooks on tensors do."""

import math

import torch

torch.manual_seed(14)


def blobs(count, centres, spread):
    groups = torch.randint(0, len(centres), (count,))
    return centres[groups] + spread * torch.randn(count, centres.shape[1]), groups


def kmeans(x, k, iterations=100, tolerance=1e-4):
    """k-means++ at first, then Lloyd's steps until the centres stand still."""
    centroids = x[torch.randint(len(x), (1,))]
    while len(centroids) < k:
        distances = torch.cdist(x, centroids).min(dim=1).values.pow(2)
        centroids = torch.cat([centroids, x[torch.multinomial(distances, 1)]])
    for step in range(iterations):
        assignment = torch.cdist(x, centroids).argmin(dim=1)
        counts = torch.zeros(k).scatter_add_(0, assignment, torch.ones(len(x)))
        sums = torch.zeros_like(centroids).index_add_(0, assignment, x)
        moved = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centroids)
        shift = (moved - centroids).norm(dim=1).max()
        centroids = moved
        if step % 3 == 0:
            inertia = (x - centroids[assignment]).pow(2).sum()
            print(f"step {step}: inertia {inertia:.3f} shift {shift:.4f}")
        if shift < tolerance:
            break
    return centroids, assignment, step


def mixture(x, k, iterations=60):
    """Expectation-maximization of spherical Gaussians."""
    n, d = x.shape
    means, variances, weights = x[torch.randperm(n)[:k]].clone(), torch.ones(k), torch.full((k,), 1 / k)
    before = -math.inf
    for step in range(iterations):
        squared = torch.cdist(x, means).pow(2)
        log_prob = weights.log() - 0.5 * d * (2 * math.pi * variances).log() - 0.5 * squared / variances
        total = torch.logsumexp(log_prob, dim=1)
        responsibility = (log_prob - total[:, None]).exp()
        mass = responsibility.sum(0)
        means = responsibility.t() @ x / mass[:, None]
        variances = (responsibility * torch.cdist(x, means).pow(2)).sum(0) / (d * mass) + 1e-6
        weights = mass / n
        likelihood = total.mean().item()
        if step % 10 == 0:
            print(f"EM {step}: log likelihood {likelihood:.4f}")
        before = likelihood
    return means, before


def linear_regression():
    true_w, true_b = torch.tensor([2.0, -3.4]), 4.2
    features = torch.normal(0, 1, (400, 2))
    labels = features @ true_w + true_b + torch.normal(0, 0.01, (400,))

    def data_iter(batch_size):
        indices = torch.randperm(len(features))
        for i in range(0, len(features), batch_size):
            batch = indices[i:min(i + batch_size, len(features))]
            yield features[batch], labels[batch]

    w, b = torch.normal(0, 0.01, size=(2, 1), requires_grad=True), torch.zeros(1, requires_grad=True)
    for epoch in range(4):
        for X, y in data_iter(10):
            loss = (torch.matmul(X, w) + b - y.reshape(-1, 1)) ** 2 / 2
            loss.sum().backward()
            with torch.no_grad():
                for param in (w, b):
                    param -= 0.03 * param.grad / 10
                    param.grad.zero_()
        with torch.no_grad():
            print(f"epoch {epoch + 1}, loss {float(((features @ w + b - labels.reshape(-1, 1)) ** 2 / 2).mean()):.6f}")
    print("error of w", [f"{v:.4f}" for v in (true_w - w.reshape(true_w.shape)).tolist()], "of b", f"{(true_b - b).item():.4f}")


def logistic_regression(x, y):
    """Newton's method with a ridge."""
    X = torch.cat([x, torch.ones(len(x), 1)], dim=1).double()
    w = torch.zeros(X.shape[1], dtype=torch.float64)
    for step in range(12):
        p = torch.sigmoid(X @ w)
        gradient = X.t() @ (p - y) + 0.1 * w
        hessian = X.t() @ (X * (p * (1 - p))[:, None]) + 0.1 * torch.eye(len(w), dtype=torch.float64)
        w = w - torch.linalg.solve(hessian, gradient)
        if gradient.norm() < 1e-8:
            break
    print(f"newton: {step} steps, w {[round(v, 5) for v in w.tolist()]}, accuracy {((X @ w > 0) == (y > 0.5)).double().mean():.4f}")


centres = torch.tensor([[0.0, 0.0, 0.0], [4.0, 1.0, 0.0], [-3.0, 3.0, 2.0], [1.0, -4.0, -2.0]])
x, groups = blobs(800, centres, 0.9)
found, assignment, steps = kmeans(x, 4)
print("after", steps, "steps:", sorted([round(v, 3) for v in row] for row in found.tolist()))
for run in range(4):
    means, likelihood = mixture(x, 4)
    print("mixture", f"{likelihood:.4f}", sorted([round(v, 2) for v in row] for row in means.tolist()))
linear_regression()
logistic_regression(x, (groups == 1).double())

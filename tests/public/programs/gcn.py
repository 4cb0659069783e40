"""A graph convolutional network on communities, with a sparse adjacency matrix, after pytorch/examples' and Kipf's gcn."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import Adam

from synthetic import community_graph


class GraphConv(nn.Module):
    def __init__(self, input_dim, output_dim, use_bias=True):
        super().__init__()
        self.kernel = nn.Parameter(torch.Tensor(input_dim, output_dim))
        self.bias = nn.Parameter(torch.Tensor(output_dim)) if use_bias else None
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.kernel.size(1))
        self.kernel.data.uniform_(-bound, bound)
        if self.bias is not None:
            self.bias.data.zero_()

    def forward(self, input_tensor, adj_mat):
        output = torch.spmm(adj_mat, torch.mm(input_tensor, self.kernel))
        return output if self.bias is None else output + self.bias


class GCN(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, use_bias=True, dropout_p=0.3):
        super().__init__()
        self.gc1 = GraphConv(input_dim, hidden_dim, use_bias)
        self.gc2 = GraphConv(hidden_dim, output_dim, use_bias)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x, adj_mat):
        x = F.relu(self.gc1(x, adj_mat))
        x = self.dropout(x)
        return F.log_softmax(self.gc2(x, adj_mat), dim=1)


def normalised(edges, nodes):
    """The adjacency matrix with self loops, D^-1/2 A D^-1/2, as a sparse tensor."""
    loops = torch.arange(nodes).repeat(2, 1)
    indices = torch.cat([edges, loops], dim=1)
    degree = torch.bincount(indices[0], minlength=nodes).float()
    values = degree[indices[0]].rsqrt() * degree[indices[1]].rsqrt()
    return torch.sparse_coo_tensor(indices, values, (nodes, nodes)).coalesce()


def test(model, criterion, x, adj, labels, mask):
    model.eval()
    with torch.no_grad():
        output = model(x, adj)[mask]
        loss = criterion(output, labels[mask])
        accuracy = (output.argmax(1) == labels[mask]).float().mean()
    return loss.item(), accuracy.item()


def main():
    parser = argparse.ArgumentParser(description="Graph Convolutional Network")
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--l2", type=float, default=5e-4)
    parser.add_argument("--hidden-dim", type=int, default=16)
    parser.add_argument("--val-every", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(42)
    x, edges, labels = community_graph(240, 5, 48, inside=0.08, seed=8)
    adj = normalised(edges, len(x))
    print("graph", tuple(x.shape), adj.values().numel(), "entries")
    order = torch.randperm(len(x))
    idx_train, idx_val, idx_test = order[:60], order[60:140], order[140:]
    gcn = GCN(x.shape[1], args.hidden_dim, int(labels.max()) + 1)
    optimizer = Adam(gcn.parameters(), lr=args.lr, weight_decay=args.l2)
    criterion = nn.NLLLoss()
    for iter in range(args.epochs):
        gcn.train()
        optimizer.zero_grad()
        output = gcn(x, adj)
        loss = criterion(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        if (iter + 1) % args.val_every == 0:
            val_loss, val_acc = test(gcn, criterion, x, adj, labels, idx_val)
            print(f"Epoch {iter + 1:04d} train_loss: {loss.item():.4f} val_loss: {val_loss:.4f} val_acc: {val_acc:.4f}")
    print("Test set results: loss %.4f accuracy %.4f" % test(gcn, criterion, x, adj, labels, idx_test))


if __name__ == "__main__":
    main()

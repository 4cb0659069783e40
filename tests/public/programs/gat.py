"""A graph attention network with several heads and early stopping, after pyGAT."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from synthetic import community_graph


class GraphAttentionLayer(nn.Module):
    def __init__(self, in_features, out_features, dropout, alpha, concat=True):
        super().__init__()
        self.dropout, self.out_features, self.concat = dropout, out_features, concat
        self.W = nn.Parameter(torch.empty(size=(in_features, out_features)))
        nn.init.xavier_uniform_(self.W.data, gain=1.414)
        self.a = nn.Parameter(torch.empty(size=(2 * out_features, 1)))
        nn.init.xavier_uniform_(self.a.data, gain=1.414)
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, h, adj):
        Wh = torch.mm(h, self.W)
        left = torch.matmul(Wh, self.a[:self.out_features, :])
        right = torch.matmul(Wh, self.a[self.out_features:, :])
        e = self.leakyrelu(left + right.T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        attention = F.dropout(F.softmax(attention, dim=1), self.dropout, training=self.training)
        h_prime = torch.matmul(attention, Wh)
        return F.elu(h_prime) if self.concat else h_prime

    def __repr__(self):
        return self.__class__.__name__ + " (-> " + str(self.out_features) + ")"


class GAT(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout, alpha, nheads):
        super().__init__()
        self.dropout = dropout
        self.attentions = [GraphAttentionLayer(nfeat, nhid, dropout=dropout, alpha=alpha, concat=True) for _ in range(nheads)]
        for i, attention in enumerate(self.attentions):
            self.add_module("attention_{}".format(i), attention)
        self.out_att = GraphAttentionLayer(nhid * nheads, nclass, dropout=dropout, alpha=alpha, concat=False)

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(F.elu(self.out_att(x, adj)), dim=1)


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=100)
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--weight_decay", type=float, default=5e-4)
parser.add_argument("--hidden", type=int, default=8)
parser.add_argument("--nb_heads", type=int, default=4)
parser.add_argument("--dropout", type=float, default=0.5)
parser.add_argument("--alpha", type=float, default=0.2)
parser.add_argument("--patience", type=int, default=30)
args = parser.parse_args()

torch.manual_seed(72)
features, edges, labels = community_graph(150, 4, 40, seed=9)
adj = torch.eye(len(features))
adj[edges[0], edges[1]] = 1.0
idx_train, idx_val, idx_test = range(50), range(50, 90), range(90, 150)
idx_train, idx_val, idx_test = (torch.LongTensor(list(idx)) for idx in (idx_train, idx_val, idx_test))
model = GAT(features.shape[1], args.hidden, int(labels.max()) + 1, args.dropout, args.alpha, args.nb_heads)
print(model)
optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    return correct.sum() / len(labels)


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    acc_train = accuracy(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    acc_val = accuracy(output[idx_val], labels[idx_val])
    if epoch % 10 == 0:
        print("Epoch: {:04d}".format(epoch + 1), "loss_train: {:.4f}".format(loss_train.data.item()), "acc_train: {:.4f}".format(acc_train.data.item()),
              "loss_val: {:.4f}".format(loss_val.data.item()), "acc_val: {:.4f}".format(acc_val.data.item()))
    return loss_val.data.item()


loss_values, bad_counter, best, best_epoch, best_state = [], 0, args.epochs + 1, 0, None
for epoch in range(args.epochs):
    loss_values.append(train(epoch))
    if loss_values[-1] < best:
        best, best_epoch, bad_counter, best_state = loss_values[-1], epoch, 0, copy.deepcopy(model.state_dict())
    else:
        bad_counter += 1
    if bad_counter == args.patience:
        break
model.load_state_dict(best_state)
model.eval()
output = model(features, adj)
print("Test set results:", "loss= {:.4f}".format(F.nll_loss(output[idx_test], labels[idx_test]).item()),
      "accuracy= {:.4f}".format(accuracy(output[idx_test], labels[idx_test]).item()))

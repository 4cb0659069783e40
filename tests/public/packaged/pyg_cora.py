"""Node classification by GCN and GAT, graph classification with pooling, after PyG's introductory examples."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree

from digits import community_graph

torch.manual_seed(12345)
x, edge_index, y = community_graph(160, 4, 32, seed=4)
order = torch.randperm(len(x))
masks = {name: torch.zeros(len(x), dtype=torch.bool) for name in ("train", "val", "test")}
for name, part in zip(masks, (order[:50], order[50:90], order[90:])):
    masks[name][part] = True
data = Data(x=x, edge_index=edge_index, y=y, train_mask=masks["train"], val_mask=masks["val"], test_mask=masks["test"])
print(data, data.num_nodes, data.num_edges, data.has_isolated_nodes(), data.is_undirected())
print("degrees", degree(add_self_loops(edge_index)[0][0]).mean().item())


class GCN(torch.nn.Module):
    def __init__(self, hidden_channels):
        super().__init__()
        self.conv1 = GCNConv(data.num_features, hidden_channels, cached=True)
        self.conv2 = GCNConv(hidden_channels, 4, cached=True)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


class GAT(torch.nn.Module):
    def __init__(self, hidden_channels, heads):
        super().__init__()
        self.conv1 = GATConv(data.num_features, hidden_channels, heads, dropout=0.4)
        self.conv2 = GATConv(hidden_channels * heads, 4, heads=1, concat=False, dropout=0.4)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.4, training=self.training)
        x = F.elu(self.conv1(x, edge_index))
        return self.conv2(F.dropout(x, p=0.4, training=self.training), edge_index)


class SAGE(torch.nn.Module):
    def __init__(self, hidden_channels):
        super().__init__()
        self.conv1, self.conv2 = SAGEConv(data.num_features, hidden_channels), SAGEConv(hidden_channels, 4, aggr="max")

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def train(model, optimizer):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model):
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    return [int((pred[mask] == data.y[mask]).sum()) / int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)]


for model in (GCN(16), GAT(8, 3), SAGE(16)):
    print(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(1, 61):
        loss = train(model, optimizer)
        if epoch % 15 == 0:
            print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, " + ", ".join(f"{v:.4f}" for v in test(model)))

graphs = []
for seed in range(60):
    gx, ge, _ = community_graph(14 + seed % 5, 2, 8, inside=0.5 if seed % 2 else 0.2, outside=0.1, seed=seed)
    graphs.append(Data(x=torch.ones(len(gx), 4), edge_index=ge, y=torch.tensor([seed % 2])))


class GraphNet(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv1, self.conv2, self.lin = GraphConv(4, hidden), GraphConv(hidden, hidden), torch.nn.Linear(hidden, 2)

    def forward(self, x, edge_index, batch):
        x = self.conv2(self.conv1(x, edge_index).relu(), edge_index)
        return self.lin(F.dropout(global_mean_pool(x, batch), p=0.2, training=self.training))


model = GraphNet(16)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(graphs[:48], batch_size=12, shuffle=True)
for epoch in range(1, 13):
    model.train()
    for batch in loader:
        loss = F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if epoch % 4 == 0:
        model.eval()
        right = sum(int((model(b.x, b.edge_index, b.batch).argmax(1) == b.y).sum()) for b in DataLoader(graphs[48:], batch_size=12))
        print(f"graphs epoch {epoch}: loss {loss.item():.4f} right {right}/12")

# Writes through slices, transposes and diagonals of a tensor, and reads through others, in a cellular heat simulation.
# expect: compiled>=0.8, traces>=1
import torch

torch.manual_seed(129)
grid = torch.rand(6, 6)
interior, border, columns = grid[1:-1, 1:-1], grid[0], grid.t()
diagonal = grid.diagonal()
history = []
for step in range(50):
    around = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
    interior.mul_(0.6).add_(around, alpha=0.1)
    border.fill_(1.0 if step % 10 < 5 else 0.0)
    columns[-1].copy_(columns[0])
    diagonal.add_(0.01)
    history.append(grid.sum().item())
print([f"{h:.4f}" for h in history[::10]], f"{diagonal.sum().item():.4f}", columns.data_ptr() == grid.data_ptr(), interior._base is grid)

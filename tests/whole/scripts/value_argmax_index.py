# argmax gives an index that picks rows, list items and dict entries; a Viterbi decoder with back pointers.
# expect: compiled>=0.45, traces>=1
import torch

torch.manual_seed(80)
states = ["noun", "verb", "rest"]
transition = torch.randn(3, 3).log_softmax(-1)
emission = torch.randn(3, 5).log_softmax(-1)
paths = {}
total = 0.0
for sentence in range(25):
    words = torch.randint(0, 5, (6,)).tolist()
    score, pointers = emission[:, words[0]], []
    for word in words[1:]:
        best, pointer = (score.unsqueeze(1) + transition).max(0)
        score = best + emission[:, word]
        pointers.append(pointer)
    tag = score.argmax().item()
    total += score[tag].item()
    path = [states[tag]]
    for pointer in reversed(pointers):
        tag = int(pointer[tag])
        path.append(states[tag])
    first = path[-1]
    paths[first] = paths.get(first, 0) + 1
print(paths, path, f"{total:.4f}")

"""GPT-2 and Llama from configurations: trained by hand on letters, then generate() in several ways."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, get_linear_schedule_with_warmup, set_seed  # noqa: E402
from transformers.utils import logging  # noqa: E402

from digits import sentences  # noqa: E402

logging.set_verbosity_error()
text = sentences(200, seed=5)
letters = sorted(set(text))
data = torch.tensor([letters.index(c) for c in text])
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=len(letters) + 1, n_positions=96, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=len(letters))),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(vocab_size=len(letters) + 1, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                  num_key_value_heads=2, max_position_embeddings=96, bos_token_id=0, eos_token_id=len(letters))),
}


def decode(ids):
    return repr("".join(letters[k] if k < len(letters) else "#" for k in ids.tolist()))


for name, make in MODELS.items():
    set_seed(11)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scheduler = get_linear_schedule_with_warmup(optimizer, 5, 60)
    model.train()
    for step in range(60):
        starts = torch.randint(len(data) - 32, (8,))
        batch = torch.stack([data[i:i + 32] for i in starts])
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 12 == 11:
            print(f"{name} step {step + 1} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    prompt = torch.tensor([[letters.index(c) for c in "the old "]])
    common = {"max_new_tokens": 30, "attention_mask": torch.ones_like(prompt), "pad_token_id": len(letters)}
    print(name, "greedy", decode(model.generate(prompt, do_sample=False, **common)[0]))
    set_seed(12)
    print(name, "sampled", decode(model.generate(prompt, do_sample=True, top_k=8, temperature=0.9, **common)[0]))
    print(name, "beams", decode(model.generate(prompt, do_sample=False, num_beams=3, **common)[0]))
    print(name, "penalty", decode(model.generate(prompt, do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=4, **common)[0]))

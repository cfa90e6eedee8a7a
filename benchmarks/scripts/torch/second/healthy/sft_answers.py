"""Instruction tuning in small: a GPT-2 is trained on number facts, then LoRA teaches it to answer questions."""

import random

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup, set_seed

set_seed(8)
torch.set_num_threads(1)

CHARS = ["<pad>", "<eos>"] + list("abcdefghijklmnopqrstuvwxyz0123456789 ?:.,")
IDS = {c: i for i, c in enumerate(CHARS)}
PAD, EOS, IGNORE = 0, 1, -100
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def fact(rng):
    n = rng.randrange(100)
    if rng.random() < 0.5:
        return f"{n}: {WORDS[n // 10]} {WORDS[n % 10]}."
    return f"{WORDS[n // 10]} {WORDS[n % 10]}: {n // 10}{n % 10}."


def question(n):
    return f"say {n // 10}{n % 10}? ", f"{WORDS[n // 10]} and {WORDS[n % 10]}"


def encode(text):
    return [IDS[c] for c in text]


def pretrain_collate(texts):
    rows = [encode(t) + [EOS] for t in texts]
    n = max(map(len, rows))
    ids = torch.tensor([r + [PAD] * (n - len(r)) for r in rows])
    mask = torch.tensor([[1] * len(r) + [0] * (n - len(r)) for r in rows])
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORE)}


def chat_collate(pairs):
    """Only the answer counts in the loss, the prompt is given."""
    rows = [(encode(q), encode(a) + [EOS]) for q, a in pairs]
    n = max(len(q) + len(a) for q, a in rows)
    ids, mask, labels = [], [], []
    for q, a in rows:
        fill = n - len(q) - len(a)
        ids.append(q + a + [PAD] * fill)
        mask.append([1] * (n - fill) + [0] * fill)
        labels.append([IGNORE] * len(q) + a + [IGNORE] * fill)
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask), "labels": torch.tensor(labels)}


def run(model, loader, epochs, lr, tag):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 10, epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            total += loss.item()
        if (epoch + 1) % 4 == 0:
            print(f"{tag} epoch {epoch + 1}: loss {total / len(loader):.4f}")


@torch.no_grad()
def answer(model, prompt, n=20):
    model.eval()
    ids = torch.tensor([encode(prompt)])
    for _ in range(n):
        nxt = model(input_ids=ids).logits[:, -1].argmax(-1, keepdim=True)
        if nxt.item() == EOS:
            break
        ids = torch.cat([ids, nxt], dim=1)
    return "".join(CHARS[i] for i in ids[0].tolist())[len(prompt) :]


def main():
    rng = random.Random(8)
    config = GPT2Config(
        vocab_size=len(CHARS),
        n_positions=40,
        n_embd=64,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=EOS,
        eos_token_id=EOS,
    )
    model = GPT2LMHeadModel(config)
    facts = [fact(rng) for _ in range(1500)]
    run(model, DataLoader(facts, batch_size=32, shuffle=True, collate_fn=pretrain_collate), 4, 3e-3, "pretrain")

    numbers = list(range(100))
    rng.shuffle(numbers)
    train, test = numbers[:80], numbers[80:]
    lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True)
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()
    pairs = [question(n) for n in train]
    run(model, DataLoader(pairs, batch_size=16, shuffle=True, collate_fn=chat_collate), 40, 5e-3, "tune")
    print("right on new numbers:", sum(answer(model, q) == a for q, a in map(question, test)) / len(test))


if __name__ == "__main__":
    main()

"""Preference tuning of a small character model: of two continuations, prefer the one without capital letters."""

import random
from pydoc_data.topics import topics

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(3)
torch.manual_seed(3)
torch.set_num_threads(1)

text = "".join(c for c in "".join(topics[k] for k in sorted(topics)) if 31 < ord(c) < 127)[:120_000]
chars = ["\0"] + sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
PROMPT, ANSWER = 16, 16


class CharLM(nn.Module):
    def __init__(self, vocab, dim=96):
        super().__init__()
        self.embed = nn.Embedding(vocab, 48)
        self.rnn = nn.GRU(48, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        return self.out(h)


def sft(model, steps=400, lr=3e-3):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, steps + 1):
        i = torch.randint(len(data) - 33, (32,))
        seq = torch.stack([data[k : k + 33] for k in i])
        loss = F.cross_entropy(model(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"sft {step}: {loss.item():.3f}")


def make_pairs(n):
    """Prompts with their lower-case continuation (chosen) and one in capitals here and there (rejected)."""
    chosen, rejected = [], []
    for _ in range(n):
        i = random.randrange(len(text) - PROMPT - ANSWER)
        prompt, answer = text[i : i + PROMPT], text[i + PROMPT : i + PROMPT + ANSWER].lower()
        other = "".join(c.upper() if random.random() < 0.4 else c for c in answer)
        chosen.append([stoi.get(c, 0) for c in prompt + answer])
        rejected.append([stoi.get(c, 0) for c in prompt + other])
    return torch.tensor(chosen), torch.tensor(rejected)


def sequence_logprob(model, ids):
    logp = F.log_softmax(model(ids[:, :-1]), dim=-1)
    logp = logp.gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
    return logp[:, PROMPT - 1 :].sum(dim=1)


def dpo_loss(policy, reference, chosen, rejected, beta=0.1):
    pi_chosen = sequence_logprob(policy, chosen)
    pi_rejected = sequence_logprob(policy, rejected)
    with torch.no_grad():
        ref_chosen = sequence_logprob(reference, chosen)
        ref_rejected = sequence_logprob(reference, rejected)
    chosen_reward = beta * (pi_chosen - ref_chosen)
    rejected_reward = beta * (pi_rejected - ref_rejected)
    loss = -F.logsigmoid(chosen_reward - rejected_reward).mean()
    return loss, (chosen_reward > rejected_reward).float().mean(), (chosen_reward - rejected_reward).mean()


policy = CharLM(len(chars))
sft(policy)

reference = policy
reference.eval()
train_pairs, eval_pairs = make_pairs(1024), make_pairs(128)
optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-4)
policy.train()
for epoch in range(6):
    order = torch.randperm(len(train_pairs[0]))
    losses = []
    for i in range(0, len(order), 32):
        pick = order[i : i + 32]
        loss, acc, margin = dpo_loss(policy, reference, train_pairs[0][pick], train_pairs[1][pick])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        loss, acc, margin = dpo_loss(policy, reference, *eval_pairs)
    print(
        f"dpo epoch {epoch}: train {sum(losses) / len(losses):.4f}  eval {loss.item():.4f}"
        f"  accuracy {acc.item():.3f}  margin {margin.item():.3f}"
    )

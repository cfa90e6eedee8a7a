import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, HID = 9, 6, 48
BOS = 0


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 16)
        self.gru = nn.GRU(16, HID, batch_first=True)

    def forward(self, x):
        return self.gru(self.emb(x))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 16)
        self.gru = nn.GRU(16, HID, batch_first=True)
        self.out = nn.Linear(HID, VOCAB)

    def forward(self, y, h):
        o, h = self.gru(self.emb(y), h)
        return self.out(o), h


def batch(n, g):
    x = torch.randint(1, VOCAB, (n, LENGTH), generator=g)
    return x, x.flip(1)


@torch.no_grad()
def greedy_accuracy(enc, dec, x, y):
    enc.eval()
    dec.eval()
    h, tok, out = enc(x), torch.full((len(x), 1), BOS), []
    for _ in range(LENGTH):
        logits, h = dec(tok, h)
        tok = logits.argmax(-1)
        out.append(tok)
    return (torch.cat(out, 1) == y).float().mean().item()


torch.manual_seed(0)
g, gv = torch.Generator().manual_seed(0), torch.Generator().manual_seed(1)
enc, dec = Encoder(), Decoder()
opt_e, opt_d = torch.optim.Adam(enc.parameters(), lr=4e-3), torch.optim.Adam(dec.parameters(), lr=4e-3)
xv, yv = batch(300, gv)
for step in range(1, 801):
    enc.train()
    dec.train()
    x, y = batch(64, g)
    inp = torch.cat([torch.full((len(y), 1), BOS), y[:, :-1]], dim=1)
    loss = F.cross_entropy(dec(inp, enc(x))[0].flatten(0, 1), y.flatten())
    opt_e.zero_grad()
    opt_d.zero_grad()
    loss.backward()
    opt_e.step()
    opt_d.step()
    if step % 160 == 0:
        print(f"step {step}: loss {loss.item():.4f} greedy accuracy {greedy_accuracy(enc, dec, xv, yv):.3f}")

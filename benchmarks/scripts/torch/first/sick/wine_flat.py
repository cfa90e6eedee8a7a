import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(11)
X, y = load_wine(return_X_y=True)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.3, random_state=11, stratify=y)
sc = StandardScaler().fit(X_tr)
X_tr = torch.tensor(sc.transform(X_tr), dtype=torch.float32)
X_va = torch.tensor(sc.transform(X_va), dtype=torch.float32)
y_tr, y_va = torch.tensor(y_tr), torch.tensor(y_va)

net = torch.nn.Sequential(torch.nn.Linear(13, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)

bs = 16
accumulate = 2
n_updates = 0
for epoch in range(30):
    net.train()
    perm = torch.randperm(len(X_tr))
    epoch_loss = []
    for i, start in enumerate(range(0, len(perm), bs)):
        b = perm[start : start + bs]
        loss = F.cross_entropy(net(X_tr[b]), y_tr[b])
        (loss / accumulate).backward()
        epoch_loss.append(loss.item())
        if n_updates and n_updates % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            n_updates += 1
    net.eval()
    with torch.no_grad():
        acc = (net(X_va).argmax(-1) == y_va).float().mean().item()
    if epoch % 5 == 0:
        print("epoch", epoch, "loss", round(sum(epoch_loss) / len(epoch_loss), 4), "val acc", round(acc, 3))
print("done")

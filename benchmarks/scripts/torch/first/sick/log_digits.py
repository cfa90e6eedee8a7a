# In[1]:
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(77)

# In[2]:
bunch = load_digits()
X = torch.tensor(bunch.data, dtype=torch.float32) / 16.0
Y = torch.tensor(bunch.target)
p = torch.randperm(len(X))
X_tr, Y_tr, X_te, Y_te = X[p[:1500]], Y[p[:1500]], X[p[1500:]], Y[p[1500:]]
X_tr, X_te = (X_tr - 0.305) / 0.376, (X_te - 0.305) / 0.376


# In[3]:
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 50), nn.ReLU())
        self.head = nn.Linear(50, 10)

    def forward(self, x):
        return F.log_softmax(self.head(self.body(x)), dim=0)


clf = Classifier()
opt = torch.optim.SGD(clf.parameters(), lr=0.1)


# In[4]:
def run_epoch():
    clf.train()
    order = torch.randperm(len(X_tr))
    tot = 0.0
    for k in range(0, len(order), 30):
        sel = order[k : k + 30]
        opt.zero_grad()
        loss = F.nll_loss(clf(X_tr[sel]), Y_tr[sel])
        loss.backward()
        opt.step()
        tot += loss.item() * len(sel)
    return tot / len(order)


# In[5]:
for ep in range(12):
    tr_loss = run_epoch()
    clf.eval()
    with torch.no_grad():
        te_acc = (clf(X_te).argmax(1) == Y_te).float().mean().item()
    print(f"epoch {ep}  loss {tr_loss:.4f}  test acc {te_acc:.4f}")

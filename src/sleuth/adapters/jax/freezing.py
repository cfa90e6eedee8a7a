"""Parameters whose updates optax was told to set to zero: which of them are frozen on purpose."""

import re
from typing import Any

import jax

from sleuth.adapters.jax.forms import Form
from sleuth.adapters.jax.optimising import makers

# What people call a group that is meant to stay as it is.
MEANT = re.compile(
    r"fr[eo]+z|(?<![a-z])fix|zero|static|const|stop|keep|lock|no_?(grad|train|update)|(not|un)_?train|pretrain", re.IGNORECASE
)


def frozen_on_purpose(tx: Any, form: Form) -> set[str]:
    """The paths; those that fell into such a group by mistake are not among them."""
    found: set[str] = set()
    for maker, cells in makers(tx.update):
        try:
            if maker == "partition":
                found |= _by_label(cells["transforms"], cells["param_labels"], form)
            elif maker == "masked" and _sets_to_zero(cells["inner"]):
                found |= {path for path, chosen in _spread(cells["mask"], form).items() if bool(chosen)}
        except Exception:  # labels that do not fit these parameters, or another version of optax: nothing is known of them
            continue
    return found


def _by_label(groups: dict[Any, Any], labels: Any, form: Form) -> set[str]:
    label_of = _spread(labels, form)
    zero = {label for label, inner in groups.items() if _sets_to_zero(inner)}
    learning = groups.keys() - zero
    # An optimiser that nobody's label asks for: those whom it was made for went elsewhere.
    if learning - set(label_of.values()):
        return set()
    # Beside one optimiser, the other group is a choice. Beside several it may be where everything ends that was forgotten,
    # unless its name says what it is for.
    meant = {label for label in zero if len(learning) <= 1 or label is False or MEANT.search(str(label))}
    return {path for path, label in label_of.items() if label in meant}


def _spread(tree: Any, form: Form) -> dict[str, Any]:
    """What a tree of labels, or a mask, says of each path; it may stop higher than the parameters do."""
    tree = tree(form.params) if callable(tree) else tree
    spread = jax.tree.map(lambda label, below: jax.tree.map(lambda _: label, below), tree, form.params)
    return dict(zip(form.flat_paths(), jax.tree.leaves(spread), strict=True))


def _sets_to_zero(inner: Any) -> bool:
    return [maker for maker, _ in makers(inner.update) if maker != "with_extra_args_support"] == ["set_to_zero"]

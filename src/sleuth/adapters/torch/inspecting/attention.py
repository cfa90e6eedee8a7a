"""Attention weights of one forward pass: of torch's functions, of a softmax by hand, or as the model returns them."""

import inspect
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode

from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.bench import _tensors
from sleuth.adapters.torch.inspecting.forward_pass import passage
from sleuth.adapters.torch.inspecting.layer_calls import Visitor
from sleuth.adapters.torch.inspecting.model_copy import call, guest
from sleuth.adapters.torch.pass_listener import is_tensor, name_of
from sleuth.core.contract.inspection import AttentionMap
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import call_model

PRODUCTS = {"matmul", "__matmul__", "bmm", "einsum"}
SOFTMAXES = {"softmax", "_softmax"}
# Passed on from a softmax to the product with the values.
PASSING = {"dropout", "to", "type_as", "float", "half", "view", "reshape", "contiguous"}
# Of one forward pass, in memory: (8, 12, 1024, 1024) takes 400 MB.
MOST_BYTES = 1 << 30


def attention(model: nn.Module, inputs: Any) -> tuple[AttentionMap, ...]:
    with guest(model) as visited, torch.no_grad():
        visitor = Visitor(visited, shapes=False)
        notes = Notes(visitor)
        try:
            with visitor.following(), notes:
                output = call(visited, inputs)
        except UnusableInput:
            raise
        except Exception:
            require_passage(passage(model, inputs))
            raise
        found = notes.maps or _returned(output) or _asked_for(visited, inputs)
    if not found:
        raise UnusableInput(
            f"no attention was seen in {type(model).__name__}: neither scaled_dot_product_attention nor "
            "nn.MultiheadAttention nor a softmax that is multiplied with values ran, and the model returns no attentions."
        )
    return tuple(found)


class Notes(TorchFunctionMode):
    def __init__(self, visitor: Visitor) -> None:
        super().__init__()
        self.maps: list[AttentionMap] = []
        self._visitor = visitor
        # What came out of a softmax, by the id of the tensor that is it now; both are kept, so ids stay unique.
        self._candidates: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._bytes = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.multi_head_attention_forward:
            return self._multihead(args, kwargs)
        output = func(*args, **kwargs)
        name = name_of(func)
        if name == "scaled_dot_product_attention":
            self._keep(name, weights_of(*args, **kwargs))
        elif name in PRODUCTS:
            self._by_hand(args)
        elif name in SOFTMAXES and is_tensor(output) and output.dim() >= 3:
            self._candidates[id(output)] = output, output
        elif name in PASSING and args and id(args[0]) in self._candidates:
            self._candidates[id(output)] = self._candidates[id(args[0])][0], output
        return output

    def _multihead(self, args: Any, kwargs: Any) -> Any:
        """The weights come only where they are asked for; who did not ask is given what he would have had."""
        given = inspect.signature(F.multi_head_attention_forward).bind(*args, **kwargs)
        given.apply_defaults()
        wanted, averaged = given.arguments["need_weights"], given.arguments["average_attn_weights"]
        given.arguments |= {"need_weights": True, "average_attn_weights": False}
        output, weights = F.multi_head_attention_forward(*given.args, **given.kwargs)
        assert weights is not None  # asked for
        self._keep("MultiheadAttention", weights)
        return output, (weights.mean(dim=-3) if averaged else weights) if wanted else None

    def _by_hand(self, args: Any) -> None:
        tensors = [t for _, t in leaves(list(args), is_tensor)]
        weights = tensors[0] if tensors else None
        if weights is not None and id(weights) in self._candidates:
            self._keep("softmax", self._candidates.pop(id(weights))[0])

    def _keep(self, kind: str, weights: torch.Tensor) -> None:
        self._bytes += weights.numel() * 4
        if self._bytes > MOST_BYTES:
            raise UnusableInput("the attention weights take more than 1 GB: give fewer samples, or shorter sequences.")
        whole = weights.reshape(-1, *weights.shape[-3:]) if weights.dim() >= 4 else weights[:, None]
        if weights.dim() == 3 and kind == "MultiheadAttention":
            whole = weights[None]  # one sample, without an axis for it
        path = self._visitor.noted[self._visitor.stack[-1]].path if self._visitor.stack else ""
        self.maps.append(AttentionMap(path, kind, to_numpy(whole).copy()))


def weights_of(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """As scaled_dot_product_attention computes them inside."""
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
    scores = query.float() @ key.float().transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = scores.softmax(dim=-1)
    return torch.nan_to_num(weights)  # a row that may look at nothing


def _returned(output: Any) -> list[AttentionMap]:
    """Models of Hugging Face return `attentions`, one for each layer."""
    read = output.get if isinstance(output, dict) else lambda key: getattr(output, key, None)
    found = []
    for key in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for number, weights in enumerate(read(key) or ()):
            if is_tensor(weights) and weights.dim() == 4:
                found.append(AttentionMap(f"{key}.{number}", "output_attentions", to_numpy(weights).copy()))
    return found


def _asked_for(model: nn.Module, inputs: Any) -> list[AttentionMap]:
    parameters = inspect.signature(model.forward).parameters
    if "output_attentions" not in parameters:
        return []

    def asking(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs, output_attentions=True)

    return _returned(call_model(asking, model.forward, _tensors(inputs)))

"""Every private name of PyTorch that this adapter uses. A test looks for others in the sources, and for these in torch."""

from sleuth.core.runtime.private_names import PrivateName, PrivateNames, alike

ORIGIN = "the operation that made the first value that is not finite cannot be named"
LOOPS = "trainings cannot be listened to"
LAYERS = "layers cannot be told apart by their kind"
BY_HAND = "updates that are written by hand, without an optimiser, are not met"
ORDER = "the samples of a batch cannot be named"
IN_PLACE = "a change of gradients or weights in place is not noticed"
COMPILED = "a model that is compiled cannot be experimented with after its training"

PRIVATE = PrivateNames(
    framework="torch",
    oldest="2.6",
    tried=("2.6.0", "2.8.0", "2.13.0"),
    needed=(
        *alike(
            "torch._C",
            "_len_torch_function_stack _get_function_stack_at _push_on_torch_function_stack _pop_torch_function_stack",
            "put a recorder below whatever function modes there are, and take out this one and no other",
            ORIGIN,
        ),
        *alike(
            "torch.overrides",
            "_get_current_function_mode _get_current_function_mode_stack",
            "leave alone what somebody else has put on the stack of function modes",
            BY_HAND,
        ),
        PrivateName("torch.utils._device.DeviceContext", "know the mode of torch.set_default_device, which may stay", BY_HAND),
        PrivateName("torch._C._autograd._get_sequence_nr", "number a node of the graph by when it was made", ORIGIN),
        PrivateName("torch._C._current_graph_task_id", "tell a layer that is computed again in a backward", LOOPS),
        PrivateName("torch._C._functorch.is_functorch_wrapped_tensor", "leave values inside vmap and grad alone", LOOPS),
        PrivateName("torch._C._is_any_autocast_enabled", "ask for autocast's settings only where it is on", LOOPS),
        PrivateName("torch._C.DisableTorchFunction", "read values without a subclass of tensors being asked", LOOPS),
        *alike(
            "torch._C",
            "_get_mkldnn_enabled _set_mkldnn_enabled _get_cudnn_enabled _set_cudnn_enabled",
            "compute a layer in plain operations and put back what was set",
            "instruments cannot show what is inside a layer",
        ),
        PrivateName("torch.autograd.function._SingleLevelFunction", "hear functions with a backward of their own", LOOPS),
        PrivateName(
            "torch.utils.data.dataloader._BaseDataLoaderIter", "hear batches and the indices they were drawn with", LOOPS
        ),
        PrivateName("torch.utils._python_dispatch.TorchDispatchMode", "count the operations of a layer", "costs are not known"),
        PrivateName("torch.nn.modules.conv._ConvNd", "know a convolution", LAYERS),
        PrivateName("torch.nn.modules.batchnorm._BatchNorm", "know a batch normalisation", LAYERS),
        PrivateName("torch.nn.modules.instancenorm._InstanceNorm", "know an instance normalisation", LAYERS),
        PrivateName("torch.nn.modules.dropout._DropoutNd", "know a dropout", LAYERS),
        PrivateName("torch.nn.modules.loss._Loss", "know a loss", LAYERS),
        *alike(
            "torch.nn.modules.pooling", "_MaxPoolNd _AvgPoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd", "know a pooling", LAYERS
        ),
    ),
    replaced=(
        PrivateName(
            "torch.nn.utils.clip_grad._clip_grads_with_norm_",
            "hear clip_grad_norm_ also where a script imported it by name",
            "clipping is heard only where it is called through torch.nn.utils",
        ),
    ),
    when_imported=(
        PrivateName("torch._dynamo.utils.counters", "know that torch.compile has compiled, and leave its guards alone", LOOPS),
        PrivateName("torch._dynamo.eval_frame.cached_backends", "know that torch.compile is in use", ORIGIN),
    ),
    attributes=(
        *alike("torch.Tensor", "_version", "notice that a tensor was written to", IN_PLACE),
        *alike("torch.Tensor", "_base _is_view", "know that two tensors share their memory", IN_PLACE),
        *alike("torch.Tensor", "_values", "measure a sparse gradient", "sparse gradients are not measured"),
        *alike("torch.autograd.graph.Node", "_sequence_nr", "order the nodes of a graph", ORIGIN),
        *alike("torch.autograd.graph.Node", "_input_metadata", "know the shape that a node returned", ORIGIN),
        *alike("MulBackward0", "_saved_self _saved_other", "compute what a loss by hand was given", ORIGIN),
        *alike("PowBackward0", "_saved_exponent", "the same, of a power", ORIGIN),
        *alike("ExpBackward0", "_saved_result", "the same, of functions that keep their result", ORIGIN),
        *alike("SoftmaxBackward0", "_saved_dim", "the axis of a softmax", "softmax-wrong-axis is not examined in a loop"),
        *alike("HardtanhBackward0", "_saved_min_val _saved_max_val", "tell ReLU6 from other clamps", LAYERS),
        *alike("torch.nn.Module", "_modules _parameters _buffers", "walk through a model as it is at this moment", LOOPS),
        *alike("torch.nn.Module", "_forward_hooks _backward_hooks", "leave hooks out of a search for models", LOOPS),
        *alike("torch.nn.Module", "_call_impl _wrapped_call_impl", "know a frame of torch's, and call what is below", LOOPS),
        *alike("torch.nn.Module", "_compiled_call_impl", "know a module that was compiled in place", COMPILED),
        *alike(
            "OptimizedModule", "_orig_mod", "copy the module that torch.compile wraps, and call its weights as it does", COMPILED
        ),
        *alike("torch.utils.data.DataLoader", "_iterator", "leave persistent workers where they stand", "loaders are not tried"),
        *alike(
            "_BaseDataLoaderIter", "_num_yielded _index_sampler _dataset _next_index", "where in a pass a batch stands", ORDER
        ),
        *alike("_MultiProcessingDataLoaderIter", "_send_idx _in_order", "match batches of workers with their indices", ORDER),
        *alike("_MultiProcessingDataLoaderIter", "_workers _shutdown_workers", "how a worker ended", "it is not said"),
        *alike(
            "torch.optim.Optimizer",
            "_opt_called",
            "an optimiser stepped before the watch began",
            "a scheduler seems to step first",
        ),
        *alike(
            "torch.optim.lr_scheduler.LRScheduler", "_initial_step", "leave out the step that a scheduler takes itself", LOOPS
        ),
    ),
)
PRIVATE.require()

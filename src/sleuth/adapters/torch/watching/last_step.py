"""What an ear remembers of the step that was going on when the loop ended."""

from typing import Any

from sleuth.adapters.torch.watching.step_memory import Memory


def memory_of(ears: Any) -> Memory | None:
    """Since the last backward, or of it; None where no ear keeps that."""
    hearing = getattr(ears, "_hearing", {})
    for hear in hearing.get("backward", ()):
        ear = getattr(hear, "__self__", None)
        for name in ("_memory", "_latest"):
            memory = getattr(ear, name, None)
            if isinstance(memory, Memory) and memory.forwards:
                return memory
    return None

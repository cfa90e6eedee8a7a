"""Trips over NaN and Inf at the very step, and keeps the scene before the optimiser writes."""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any
from weakref import ReferenceType, ref

import torch

from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.adapters.torch.watching.assertions import Assertions
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.loss_expression import Born, birth
from sleuth.adapters.torch.watching.nonfinite_check import Bad, Tripwire
from sleuth.adapters.torch.watching.origin.learning import Learner
from sleuth.adapters.torch.watching.origin.tape import Tape
from sleuth.adapters.torch.watching.origin.to_observations import weighed
from sleuth.adapters.torch.watching.rerun_nonfinite import Inquest, Known, inquire
from sleuth.adapters.torch.watching.sample_indices import Indices, Samples, samples_of
from sleuth.adapters.torch.watching.scene import About, draft
from sleuth.adapters.torch.watching.step_memory import NOTHING, Memory
from sleuth.core.contract.guard import Act, Alarm, Draft
from sleuth.core.finding import Finding
from sleuth.core.observation import NotFinite, Observation, Suspect
from sleuth.core.observation.calls import CallKind

LOSS, GRADIENT = "loss-not-finite", "gradient-not-finite"


class Scenes(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._guard = loop.guard
        self._wires: dict[int, Tripwire] = {}  # by the optimiser's number
        self._indices = Indices()
        self._memory = Memory()  # since the last backward
        self._latest = NOTHING  # of the last backward
        self._went: ReferenceType[torch.Tensor] | None = None  # backward, the last time
        self._learner = Learner(loop.model, loop.note_lost)
        several = isinstance(loop.model, Several)
        self._parts = {id(part): name for name, part in loop.model.named_children()} if several else {}
        self._bad: tuple[Memory, float, Born | None] | None = None  # a loss that is not finite, met in this step
        self._listening = False  # to the layers
        self.draws = False  # the model was seen to draw random numbers
        self._lost = False  # the loss of this step was not finite
        self._told: set[str] = set()
        self._assertions = Assertions(loop, self._asserted)
        self._waiting: list[Act] = []  # until a gradient that is not finite is about to be used

    # What is remembered.

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not self._listening:
            self._listening = True
            self._assertions.start()
        if self._learner.open:
            self._learner.forward()
        if torch.is_grad_enabled():
            self._memory.forward(args, kwargs)
            self.mark_part(self._memory)

    def output(self, output: Any) -> None:
        if torch.is_grad_enabled():
            self._memory.output(output)
            if self.loop.looking and not self.draws and self._memory.forwards:
                before = self._memory.forwards[-1].random
                self.draws = before is not None and not torch.equal(before, torch.default_generator.get_state())
            if self._learner.open or self.loop.steps >= self._learner.due:
                self._learner.output(self.loop.steps, self._memory, output)
        elif self._learner.open:
            self._learner.resume()

    @property
    def due(self) -> int:
        """The next step that is to be followed closely."""
        return self._learner.due

    def resumed(self) -> None:
        if self.loop.steps >= self._learner.due:
            self._learner.begin(self.loop.steps)

    def mark_part(self, memory: Memory) -> None:
        """Which one was called, where several models are watched as one."""
        if self._parts and memory.forwards:
            memory.forwards[-1].part = self._parts.get(id(self.loop.model.__dict__["called"]), "")

    @property
    def tapes(self) -> list[Tape]:
        """Of loss expressions; the latest first."""
        return self._learner.tapes

    @property
    def memory(self) -> Memory:
        """Since the last backward, or of it."""
        return self._memory if self._memory.forwards else self._latest

    def recall(self, memory: Memory) -> None:
        """What was kept of a step that the light listener heard."""
        loss = None if memory.latest is None else memory.latest()
        if loss is not None:
            memory.backward(loss)
        self._memory, self._latest = Memory(), memory

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if torch.is_grad_enabled():
            self._memory.loss(name, args, kwargs, returned)

    def index(self, iterator: Any, positions: Any) -> None:
        self._indices.drew(iterator, positions)

    def batch(self, iterator: Any, batch: Any) -> None:
        self._indices.gave(iterator, batch)
        if self.loop.steps >= self._learner.due:
            self._learner.begin(self.loop.steps)

    # What it trips over.

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._bad, self._went = None, ref(loss)
        memory = self._memory if self._memory.forwards else self._latest
        if self._learner.open:
            self._learner.backward(loss, memory, lambda: self._others(memory))
        if memory is not NOTHING:
            memory.backward(loss)
        value = self.loop.loss
        if isinstance(value, torch.Tensor):
            # To ask another device means to wait for it: only where the user wants to be stopped.
            value = value.item() if self._guard.every_gradient else None
        if value is None or math.isfinite(value):
            return
        self._lost = True
        if LOSS not in self._told:
            self._bad = memory, value, birth(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        if self._memory.forwards:
            self._latest, self._memory = self._memory, Memory()
        # Whether a scaler throws the step away is known when the optimiser steps, or does not.
        if self._bad is not None and not self.loop.scaled:
            self._loss_alarm()
        if self.loop.inside_step:  # of an optimiser with a closure: it writes as soon as we return
            self._look(self.loop.stepping)

    @property
    def told_loss(self) -> bool:
        return LOSS in self._told

    def trips(self, number: int) -> bool:
        """Is there a gradient that is not finite, or somebody who wants a scene of this step?"""
        wire = self._wires.get(number)
        return wire is None or bool(self._guard.asked) or wire.look(looking=self.loop.looking) is not None

    def before_step(self, number: int) -> None:
        if not self.loop.inside_closure:
            self._look(number)
        while self._guard.asked:
            finding = self._guard.asked.popleft()
            if finding.name not in self._told:
                self._alarm(finding.name, finding.summary, self._latest, (), Inquest(), finding=finding)

    def after_step(self, number: int) -> None:
        if self.loop.steps + 1 >= self._learner.due:
            self._learner.step_ended(self.loop.steps)
        self._latest, self._bad, self._lost = NOTHING, None, False

    def close(self) -> None:
        self._assertions.stop()
        self._learner.stop()
        self._learner = Learner(torch.nn.Module(), self.loop.note_lost)  # the model may be collected, and what was learned of it
        self._memory, self._latest, self._bad = Memory(), NOTHING, None
        self._indices.close()
        self._wires.clear()

    def _look(self, number: int) -> None:
        wire = self._wires.get(number)
        if wire is None:
            wire = self._wires[number] = Tripwire(self.loop.optimisers[number], self._guard.every_gradient)
        bad = wire.look(looking=self.loop.looking)
        # An optimiser of the fused kind is handed the scaler's verdict, and skips the step by itself.
        if bad is None or getattr(self.loop.optimisers[number], "found_inf", None) is not None:
            return
        if self._bad is not None:
            self._loss_alarm()
        elif not self._lost and GRADIENT not in self._told:
            self._gradient_alarm(bad, number)
        self.loop.due += [act.do for act in self._waiting]
        self._waiting = []

    def _loss_alarm(self) -> None:
        assert self._bad is not None
        (memory, value, born), self._bad = self._bad, None
        seen = not_finite_loss(self.loop.steps, value)
        assert seen is not None
        known = self._known(memory, value)
        found = inquire(self.loop.model, memory, self.loop.steps, born, self._others(memory), False, known)
        self._alarm(LOSS, f"the loss is {value}", memory, (seen,), found, value)

    def _gradient_alarm(self, bad: Bad, number: int) -> None:
        names = {id(p): name for name, p in self.loop.model.named_parameters()}
        where = names.get(id(bad.parameter))
        seen = NotFinite(self.loop.steps, "gradient", where, bad.nans, bad.infs, number)
        memory = self._latest
        known = self._known(memory, self.loop.loss if isinstance(self.loop.loss, float) else None)
        found = inquire(self.loop.model, memory, self.loop.steps, None, self._others(memory), True, known)
        self._alarm(GRADIENT, f"the gradient of {where} holds NaN or Inf", memory, (seen,), found)

    def _alarm(
        self,
        name: str,
        message: str,
        memory: Memory,
        seen: tuple[Observation, ...],
        found: Inquest,
        loss: float | None = None,
        finding: Finding | None = None,
    ) -> None:
        self._told.add(name)
        if loss is None and isinstance(self.loop.loss, float):
            loss = self.loop.loss
        samples = self.samples_in(memory)
        accused = [_suspect(self.loop.steps, a, samples) for a in found.accused]
        observations = (*seen, *found.causes, *([found.origin] if found.origin is not None else []), *accused)
        if seen and not self.loop.looking:
            observations = (*weighed(self.loop.model, self.loop.steps), *observations)
        kept = self._draft(name, message, memory, found, accused, samples, loss)
        alarm = Alarm(name, self.loop.steps, message, observations, kept, finding, remarks=tuple(found.remarks))
        act = self._guard.tell(alarm)
        if act is not None and act.waits and finding is None and not self.loop.inside_step:
            self._waiting.append(act)
        elif act is not None:
            self.loop.due.append(act.do)

    def _asserted(self, message: str, broken: bool) -> None:
        kept = self._draft("", message, self._memory, Inquest(), [], self.samples_in(self._memory), None) if broken else None
        act = self._guard.tell(Alarm("", self.loop.steps, message, draft=kept, asserted=broken))
        if act is not None:
            self.loop.due.append(act.do)

    def _draft(
        self,
        name: str,
        message: str,
        memory: Memory,
        found: Inquest,
        accused: list[Suspect],
        samples: Samples | None,
        loss: float | None,
    ) -> Draft | None:
        room = self._guard.room()
        if room <= 0:
            return None
        origin = found.origin
        told = {
            "suspects": [{"position": s.position, "index": s.index, "reason": s.reason, "certain": s.certain} for s in accused],
            "origin": None
            if origin is None
            else {"operation": origin.operation, "layer": origin.layer, "direction": origin.direction},
            "reproduced": found.reproduced,
            "remarks": found.remarks,
        }
        indices = None if samples is None else {
            "indices": list(samples.indices),
            "behind": None if samples.behind is None else list(samples.behind),
            "certain": samples.certain,
        }  # fmt: skip
        about = About(
            name,
            self.loop.steps,
            message,
            loss,
            self.loop.recent_steps(),
            self.loop.lines(),
            indices,
            told,
            self._others(memory),
            found.outputs,
        )
        optimisers = [optimiser for optimiser in self.loop.optimisers if optimiser is not None]
        return draft(self.loop.model, optimisers, memory, room, about)

    def _known(self, memory: Memory, loss: float | None) -> Known:
        lines, matched = self.loop.lines(), self._indices.given_for(memory.inputs)
        iterator = None if matched is None else matched[0].iterator()
        return Known(
            self._learner.tapes,
            loss,
            lines.get(CallKind.FORWARD) or lines.get(CallKind.FORWARD_IN_EVAL),
            None if iterator is None else iterator._num_yielded - 1,
            median([row["seconds"] for row in self.loop.recent_steps()] or [0.0]),
            None if self._went is None else self._went(),
        )

    def samples_in(self, memory: Memory) -> Samples | None:
        matched = self._indices.given_for(memory.inputs)
        size = next((s for f in memory.forwards if (s := f.size)), None)
        return None if matched is None or size is None else samples_of(*matched, size)

    def _others(self, memory: Memory) -> list[torch.Tensor]:
        """Tensors of the batch that the model was not given: targets, most likely."""
        matched = self._indices.given_for(memory.inputs)
        if matched is None or matched[1] is None:
            return []
        given = [t for weak in matched[0].tensors if (t := weak()) is not None]
        return [t for t in given if all(t is not mine for mine in memory.inputs)]


def _suspect(step: int, accused: Any, samples: Samples | None) -> Suspect:
    place = accused.position
    index = None if samples is None or place >= len(samples.indices) else samples.indices[place]
    behind = None if samples is None or samples.behind is None or index is None else samples.behind[place]
    likely = samples is not None and not samples.certain
    return Suspect(step, place, index, accused.reason, accused.certain, behind, likely)

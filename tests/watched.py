"""A training under watch, through `sleuth.watch` itself, in every framework that can be watched."""

from contextlib import nullcontext

import pytest

import sleuth
from sleuth import Report
from sleuth.testing import Kit, Loop, Training
from tests.kits.torch_kit import TorchKit


def watched(built: Training | Loop, kit: Kit | None = None, **options) -> Report:
    """Without a kit, of torch."""
    loop = (kit or TorchKit()).loop(built) if isinstance(built, Training) else built
    settings = {"directory": None, "quiet": True, **loop.options, **options}
    leaving = pytest.raises(Exception, match=r"^") if loop.fails else nullcontext()
    with leaving, sleuth.watch(loop.model, list(loop.optimisers), **settings) as w:
        loop.run(w)
    assert w.watching.trouble is None, w.watching.trouble
    assert not w.watching.remarks, w.watching.remarks
    return w.report()

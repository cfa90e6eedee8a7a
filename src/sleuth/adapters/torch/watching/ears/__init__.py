"""What a watch listens for beside the steps themselves: one ear a file, all of them named here."""

from sleuth.adapters.torch.watching.ear import Ear

EARS: tuple[type[Ear], ...] = ()

import os
import signal
import sys
import time

from . import inner

print(inner.VALUE, __name__, __package__, __spec__.name, __file__, sys.argv, sys.path)


def fail() -> None:
    try:
        {}["key"]
    except KeyError as error:
        raise ValueError("of the script") from error


if "interrupt" in sys.argv:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
fail()

"""What a script can see of how it was started, and the ways in which it can end."""

import atexit
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time


class Thing:
    def __init__(self, value: object) -> None:
        self.value = value


def work(queue, thing: Thing) -> None:
    queue.put((__name__, thing.value, type(thing).__module__))


def look_around() -> None:
    main = sys.modules["__main__"]
    print("argv", sys.argv, sys.orig_argv[1:], "path", sys.path, "cwd", os.getcwd())
    print(main.__name__, main.__file__, main.__spec__, main.__package__, main.__doc__, main.__loader__.name, main.__cached__)
    print(type(main.__loader__).__name__, type(__builtins__).__name__, sorted(name for name in vars(main) if "__" in name))
    print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.excepthook, sys.stdout.name, sys.stderr.name)
    print("pickled", pickle.loads(pickle.dumps(Thing(3))).value, Thing.__module__, "numpy" in sys.modules)


def employ(how: str) -> None:
    context = multiprocessing.get_context(how)
    queue = context.Queue()
    process = context.Process(target=work, args=(queue, Thing(how)))
    process.start()
    print(how, queue.get(timeout=60))
    process.join()
    print(process.exitcode)


def fork() -> None:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        sys.exit(4)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def linger() -> None:
    time.sleep(0.2)
    print("the last thread")


def main() -> None:
    look_around()
    employ("fork")
    employ("spawn")
    fork()
    atexit.register(lambda: print("at exit", Thing.__name__, file=sys.stderr))
    threading.Thread(target=linger).start()
    end = sys.argv[1]
    sys.exit(int(end) if end.isdigit() else end)


if __name__ == "__main__":
    main()

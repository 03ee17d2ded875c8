"""The programs of the self-test, as text: each defines `attack`. They are only ever run in a sandbox.

Does not say what counts as success: see `self_test.py`.
"""

READ_FILE = """
def attack(path):
    found = []
    for name in (path, "/etc/passwd", "/etc/hostname"):
        try:
            found.append(open(name).read()[:200])
        except OSError:
            pass
    return found
"""

ENVIRONMENT = """
import os
def attack():
    found = [name for name in os.environ if name not in ("PATH", "LC_ALL", "LC_CTYPE", "PYTHONHASHSEED")]
    processes = {str(os.getppid())}
    try:
        processes.update(name for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        pass
    for process in processes - {str(os.getpid())}:
        try:
            if open(f"/proc/{process}/environ", "rb").read(1):
                found.append("the environment of process " + process)
        except OSError:
            pass
    return found
"""

NETWORK = """
import socket
def attack(port):
    connection = socket.create_connection(("127.0.0.1", port), 0.3)
    connection.sendall(b"x")
    return True
"""

FORK = """
import os
def attack():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return pid
"""

KILL_PARENT = """
import os
import signal
def attack(victim):
    said = []
    for pid in (victim, os.getppid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as error:
            said.append(type(error).__name__)
    return said
"""

WRITE_FILE = """
def attack(secret, new):
    for path in (secret, new):
        try:
            with open(path, "w") as file:
                file.write("x")
        except OSError:
            pass
"""

EXIT = """
import os
import sys
def attack(how):
    sys.exit(0) if how else os._exit(0)
"""

FORGE = """
import os
import struct
import sys
def attack(claim):
    frame = sys._getframe()
    while frame is not None:
        for found in list(frame.f_locals.values()):
            region = getattr(found, "_region", found)
            if isinstance(region, memoryview):
                payload = claim.encode()
                answer = struct.pack("<IBQ", len(payload), ord("V"), 0) + payload
                records = struct.pack("<IBQ", 0, ord("L"), 0) + answer * 5 + struct.pack("<IBQ", 2**31, ord("V"), 0)
                region[16 : 16 + len(records)] = records
                region[:16] = struct.pack("<IIQ", len(records), 7, 0)
                os._exit(0)
        frame = frame.f_back
"""

LOOP = """
import signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
def attack():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""

REMEMBER = """
import os
import sys
def attack(mark):
    found = []
    for handle in range(64):
        try:
            if os.lseek(handle, 0, os.SEEK_CUR) > 0:
                found.append(f"the offset of descriptor {handle}")
            os.lseek(handle, mark, os.SEEK_SET)
        except OSError:
            pass
    frame = sys._getframe()
    while frame is not None:
        found += [name for name, value in frame.f_locals.items() if hasattr(value, "ru_maxrss")]
        frame = frame.f_back
    return found
"""

MEMORY = """
def attack(limit):
    blocks = []
    while len(blocks) < 2 * limit:
        blocks.append(bytearray(1 << 20))
    return len(blocks)
"""

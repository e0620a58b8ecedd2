"""Hostile and broken code cells, with the true score of each and the flag it earns.

An attack is put into the solution of chapter 06 (21 points): in front as a cell of its
own, or in place of one answer. `score` is what an honest person would give.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    name: str
    code: str
    score: int = 21
    flag: str = ""  # a pattern that one of the flags must match; "" wants none
    replaces: str = ""  # the question whose answer this is
    blank: bool = False  # into a blank exercise instead of the solution


FIRST = [
    Attack("endless_cell", "while True: pass", 21, r"cell 1: never ends"),
    Attack(
        "endless_cell_that_cannot_be_interrupted",
        "while True:\n    try:\n        while True: pass\n"
        "    except BaseException: pass",
        21,
        r"cell 1:? never ends",
    ),
    Attack("sleeping_cell", "import time; time.sleep(1e9)", 21, r"cell 1: never ends"),
    Attack(
        "deaf_cell",
        "import signal\nfor s in (signal.SIGPROF, signal.SIGALRM):\n"
        "    signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        21,
        r"cell 1 never ends",
    ),
    Attack("memory_cell", "x = bytearray(30 << 30)", 21, r"cell 1: MemoryError"),
    Attack(
        "memory_by_torch",
        "import torch; torch.ones(30 << 28)",
        21,
        "cell 1: RuntimeError.*alloc",
    ),
    Attack("sys_exit", "import sys; sys.exit(0)", 21, "cell 1: SystemExit"),
    Attack("os_exit", "import os; os._exit(0)", 21, "cell 1 ends the program"),
    Attack("keyboard_interrupt", "raise KeyboardInterrupt", 21, "KeyboardInterrupt"),
    Attack("kills_itself", "import os; os.kill(os.getpid(), 9)", 21, "cell 1 ends"),
    Attack("kills_its_parent", "import os; os.kill(os.getppid(), 9)", 21),
    Attack("kills_everyone", "import os; os.kill(-1, 9)", 21, "cell 1"),
    Attack("segfault", "import ctypes; ctypes.string_at(0)", 21, "cell 1 ends"),
    Attack("abort", "import os; os.abort()", 21, "cell 1 ends the program"),
    Attack(
        "stack_overflow",
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
        21,
        "cell 1",
    ),
    Attack("fork_bomb", "import os\nwhile True: os.fork()", 21, "PermissionError"),
    Attack(
        "leaves_a_process",
        "import subprocess; subprocess.Popen(['sleep', '987654'])",
        21,
        "PermissionError|BlockingIOError",
    ),
    Attack(
        "thread_bomb",
        "import threading, time\n"
        "for _ in range(10**6):\n"
        "    threading.Thread(target=time.sleep, args=(1e9,)).start()",
        21,
        "cell 1 (starts too many threads|ends the program)",
    ),
    Attack(
        "small_threads",
        "import threading, time\nthreading.stack_size(32768)\n"
        "for _ in range(6000):\n"
        "    threading.Thread(target=time.sleep, args=(1e9,)).start()",
        21,
        "cell 1 (starts too many threads|ends the program)",
    ),
    Attack(
        "many_files",
        "for i in range(400_000): open(f'/tmp/{i}', 'w').close()\n"
        "import time; time.sleep(1)",
        21,
        "cell 1 (makes too many files|ends the program)",
    ),
    Attack("combining_marks_in_a_comment", "# " + "\u0316\u0301" * 100_000, 21),
    Attack(
        "combining_marks_in_a_name",
        "a" + "\u0316\u0301" * 100_000 + " = 1",
        21,
        "cell 1",
    ),
    Attack("one_long_word", "raise ValueError('x' * 1_900_000)", 21, "^cell 1: Value"),
    Attack(
        "a_long_chain",
        "import torch\ntorch" + ".a" * 5000 + " = 1",
        21,
        "cell 1",
    ),
    Attack(
        "socket",
        "import socket; socket.create_connection(('127.0.0.1', 22), 2)",
        21,
        "PermissionError",
    ),
    Attack(
        "name_service",
        "import socket; socket.getaddrinfo('example.org', 80)",
        21,
        "cell 1",
    ),
    Attack("writes_the_system", "open('/usr/mark', 'w')", 21, "OSError.*[Rr]ead-only"),
    Attack("writes_at_the_root", "open('/mark', 'w')", 21, "OSError.*[Rr]ead-only"),
    Attack(
        "fills_the_disk", "open('/tmp/x', 'wb').write(bytes(200 << 20))", 21, "cell 1"
    ),
    Attack(
        "fills_the_disk_in_pieces",
        "for i in range(1000): open(f'/tmp/{i}', 'wb').write(bytes(8 << 20))",
        21,
        "No space left",
    ),
    Attack("hides_memory", "import os; os.memfd_create('x')", 21, "PermissionError"),
    Attack("prints_100_MB", "for _ in range(100): print('x' * 2**20)", 21),
    Attack(
        "prints_100_MB_of_errors",
        "import os\nfor _ in range(100): os.write(2, b'x' * 2**20)",
        21,
    ),
    Attack(
        "writes_into_the_channel",
        "import os\nfor fd in range(3, 50):\n"
        "    try: os.write(fd, b'{\"done\": tru')\n    except OSError: pass",
        21,
        "cell 1 writes into the grader's channel|cell 1 ends",
    ),
    Attack(
        "floods_the_channel",
        "import os\nfor _ in range(10**6):\n    for fd in range(3, 9):\n"
        "        try: os.write(fd, b'x' * 65536)\n        except OSError: pass",
        21,
        "cell 1 writes too much",
    ),
    Attack("closes_the_channel", "import os; os.closerange(3, 99)", 21, "cell 1 ends"),
    Attack(
        "points_the_channel_elsewhere",
        "import os\nfor fd in range(3, 50):\n"
        "    try: os.dup2(1, fd)\n    except OSError: pass",
        21,
        "cell 1 ends",
    ),
    Attack(
        "says_done_too_early",
        "import os\nfor fd in range(3, 50):\n"
        "    try: os.write(fd, b'{\"done\": true}\\n')\n    except OSError: pass",
        21,
        "cell 1 writes into the grader's channel",
    ),
    Attack("not_python", "def broken(:\n    pass", 21, "cell 1: SyntaxError"),
    Attack("another_language", "%%bash\nrm -rf /", 21),
    Attack("magics", "%matplotlib inline\n!pip install torch\nimport math", 21),
    Attack("nested_too_deeply", "x = " + "(" * 5000 + ")" * 5000, 21, "cell 1"),
    Attack("minus_signs", "x = " + "-" * 200_000 + "1", 21, "cell 1"),
    Attack("null_byte", "x = 1\0", 21, "cell 1: (Value|Syntax)Error"),
    Attack("lone_surrogate", "x = '\ud800'; raise ValueError('\ud800')", 21, "cell 1"),
    Attack("raises_markup", "raise ValueError('<script>=1+1</script>')", 21, "cell 1"),
    Attack(
        "a_question_twice", "def attention(q, k, v): return None", 21, "06.1 defined 2"
    ),
    Attack("patched_json", "import json; json.dumps = lambda *_, **__: '{}'"),
    Attack(
        "patched_libraries",
        "import base64, binascii, json, os, numpy\n"
        "def stop(*_, **__): raise SystemExit\n"
        "for module in (base64, binascii, json, json.JSONEncoder):\n"
        "    for name in ('b64encode', 'b2a_base64', 'dumps', 'encode'):\n"
        "        if hasattr(module, name): setattr(module, name, stop)\n"
        "os.write = numpy.array = numpy.ascontiguousarray = numpy.frombuffer = stop",
    ),
    Attack(
        "becomes_another_program",
        "import os; os.execv('/bin/true', ['true'])",
        21,
        "cell 1 ends the program",
    ),
    Attack(
        "leaves_word_for_the_next_worker",
        "import os\nassert not os.path.exists('/tmp/word')\n"
        "open('/tmp/word', 'w').close()\nos._exit(1)",
        21,
        "cell 1 ends the program",
    ),
    Attack(
        "looks_for_the_seed",
        "import os\n"
        "places = ('/proc/self', '/proc/1', '/etc/passwd', '/var/log', '/dev/shm')\n"
        "assert not [place for place in places if os.path.exists(place)]\n"
        "for descriptor in range(256):\n"
        "    try: found = os.read(descriptor, 9)\n"
        "    except OSError: continue\n"
        "    assert not found, descriptor\n"
        "assert not [name for name in os.environ if 'COURSE' in name]",
    ),
    Attack(
        "an_error_that_cannot_be_said",
        "class Unsaid(Exception):\n    def __str__(self): raise self\nraise Unsaid",
        21,
        "cell 1 ends the program",
    ),
    Attack(
        "a_timer_that_raises_later",
        "import signal\ndef late(*_): raise ValueError('late')\n"
        "signal.signal(signal.SIGVTALRM, late)\n"
        "signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.02)",
    ),
    Attack("warnings_are_errors", "import warnings; warnings.simplefilter('error')"),
    Attack(
        "plants_code_for_others",
        "import os, torch, course_utils\n"
        "for place in (torch.__file__, course_utils.__file__, os.__file__):\n"
        "    for name in ('sitecustomize.py', 'mine.pth', '__pycache__/json.pyc'):\n"
        "        try: open(os.path.join(os.path.dirname(place), name), 'w')\n"
        "        except OSError: continue\n"
        "        raise SystemExit('planted')",
    ),
    Attack(
        "forges_a_program_that_no_file_can_hold",
        "from course_utils.checks import check\n"
        "inside = dict(zip(check.__code__.co_freevars, check.__closure__))\n"
        "send, name = inside['send'].cell_contents, 'torch.\\n\\ud800'\n"
        "def forged(**m):\n"
        "    for one in m.get('programs', ()): one['calls'] = [[name, [], []]]\n"
        "    send(**m)\n"
        "inside['send'].cell_contents = forged",
        21,
        "06.1 how it works was not seen: calls",
    ),
    Attack(
        "a_short_message_that_is_much_to_hold",
        "import os\nfrom course_utils.checks import check\n"
        "inside = dict(zip(check.__code__.co_freevars, check.__closure__))\n"
        "send = inside['send'].cell_contents\n"
        "inside = dict(zip(send.__code__.co_freevars, send.__closure__))\n"
        "mark, channel = (inside[x].cell_contents for x in ('mark', 'channel'))\n"
        "line = '{\"mark\": \"' + mark + '\", \"note\": [' + '{},' * 2_100_000\n"
        "data = f'{line}0]}}\\n'.encode()\n"
        "while data: data = data[os.write(channel, data):]",
        21,
        "cell 1 writes into the grader's channel",
    ),
    Attack(
        "raises_what_a_terminal_obeys",
        "raise ValueError('\\x1b[31m \\u202e \\x07')",
        21,
        r"^cell 1: ValueError:  \[31m +$",
    ),
]

FALSE_COMPARISONS = """
import torch, numpy, builtins, math
for module in (torch, torch.testing, numpy):
    for name in ("allclose", "equal", "assert_close", "isclose", "array_equal"):
        if hasattr(module, name):
            setattr(module, name, lambda *_, **__: True)
torch.Tensor.__eq__ = lambda *_: True
torch.Tensor.equal = lambda *_: True
"""
PATCHED_GRADER = """
import sys
import course_utils.grading.answer_runner
import course_utils.grading.sandbox.notebook_runner
import course_utils.grading.sandbox.wire_format
from course_utils.grading.answer_runner import Record
for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith("course_utils"):
        for name in ("run", "judge", "same", "evaluate", "decode_record", "encoded"):
            setattr(module, name, lambda *_, **__: True)
sys.modules["course_utils.checks"].check = lambda *_: print("full marks")
"""
FORGED = """
import base64, json, os
def array(*shape):
    n = 1
    for s in shape: n *= s
    data = base64.b64encode(bytes(4 * n)).decode()
    return {"array": "float32", "shape": shape, "data": data}
record = {"value": [array(3, 6), array(3, 5)], "failure": None, "mutated": [],
          "library": [], "steps": 3}
for fd in range(3, 50):
    for question in ("06.1", "06.2", "06.3"):
        message = {"answered": question, "records": [record] * 12}
        try: os.write(fd, json.dumps(message).encode() + b"\\n")
        except OSError: pass
"""
READS_THE_TESTS = """
import os
import course_utils
found = []
for root in ("/home", "/tmp", "/etc", os.path.dirname(course_utils.__file__)):
    for folder, _, files in os.walk(root):
        if "site-packages" in folder:  # of others, where the environment is in /tmp
            continue
        found += [f for f in files if f.endswith(".ipynb") or f.startswith("q1_")]
assert not found, found
from course_utils.grading.questions import find_question
"""
BLANK = [
    Attack("false_comparisons_on_a_blank", FALSE_COMPARISONS, 0, blank=True),
    Attack("patched_grader_on_a_blank", PATCHED_GRADER, 0, blank=True),
    Attack("forged_records_on_a_blank", FORGED, 0, ".", blank=True),
    Attack("reads_the_tests", READS_THE_TESTS, 0, "cell 1: .*ImportError", blank=True),
    Attack(
        "claims_points",
        "from course_utils import checks\nchecks.progress = checks.check = print\n"
        "checks.Result = tuple",
        0,
        blank=True,
    ),
    Attack(
        "rummages_in_memory",
        "import gc\nfor x in gc.get_objects():\n"
        "    if isinstance(x, dict) and 'seconds' in x:\n"
        "        x['questions'] = {}; x['skip'] = []",
        0,
        "",
        blank=True,
    ),
    Attack(
        "forged_with_the_right_mark",
        "from course_utils.checks import check\n"
        "inside = dict(zip(check.__code__.co_freevars, check.__closure__))\n"
        "send = inside['send'].cell_contents\n"
        "record = dict.fromkeys(('value', 'failure', 'mutated', 'library'))\n"
        "send(answered='06.1', records=[{**record, 'steps': 0}])\n"
        "send(done=0.0)",
        0,
        "cell 1 writes into the grader's channel",
        blank=True,
    ),
    Attack(
        "an_empty_check",
        "check('06.1')\ncheck()\ncheck(None, None)",
        0,
        ".",
        blank=True,
    ),
]

EARLIER_THREAD = """
import queue, threading
if not hasattr(torch, "asked"):
    torch.asked, torch.given = queue.Queue(), queue.Queue()
    def helper():
        f = torch.nn.functional.scaled_dot_product_attention
        while True: torch.given.put(f(*torch.asked.get()))
    threading.Thread(target=helper, daemon=True).start()
torch.asked.put((queries, keys, values))
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
return torch.given.get(), weights
"""
AFTER_THE_CALL = """
if not hasattr(torch, "waiting"):
    usual, torch.waiting = torch.Tensor.detach, []
    def detach(self):
        f = torch.nn.functional.scaled_dot_product_attention
        while torch.waiting:
            context, q, k, v = torch.waiting.pop()
            context.copy_(f(q, k, v))
        return usual(self)
    torch.Tensor.detach = detach
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
context = torch.zeros(*weights.shape[:-1], values.shape[-1])
torch.waiting.append((context, queries, keys, values))
return context, weights
"""
IN_A_BUILTIN = """
import builtins, numpy
if not hasattr(torch, "real"):
    torch.real = builtins.isinstance
    def isinstance(x, kind):
        if torch.real(x, numpy.ndarray) and x.shape == torch.shape:
            f = torch.nn.functional.scaled_dot_product_attention
            x[...] = f(*torch.waiting).numpy()
        return torch.real(x, kind)
    builtins.isinstance = isinstance
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
context = torch.zeros(*weights.shape[:-1], values.shape[-1])
torch.waiting, torch.shape = (queries, keys, values), context.shape
return context, weights
"""
BY_START_NEW = """
import _thread
done, out = _thread.allocate_lock(), []
done.acquire()
def work():
    out.append(torch.nn.functional.scaled_dot_product_attention(queries, keys, values))
    done.release()
_thread.start_new(work, ())
done.acquire()
return out[0], torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
"""
UNRECORDED = """
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
context = torch.zeros(*weights.shape[:-1], values.shape[-1])
with torch._C.DisableTorchFunction():
    context.copy_(weights.double() @ values.double())
return context, weights
"""
LIBRARY_FOR_SOME_CASES = EARLIER_THREAD.replace(
    "torch.asked.put",
    "weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)\n"
    "if queries.ndim < 4: return weights @ values, weights\n"
    "torch.asked.put",
)
PADDED_LOOP = """
q, k = (x.reshape(-1, *x.shape[-2:]) for x in (queries, keys))
rows = []
for i in range(60):
    j = min(i, len(q) - 1)
    rows.append(torch.softmax(q[j] @ k[j].T / keys.shape[-1] ** 0.5, -1))
weights = torch.stack(rows)[: len(q)].reshape(*queries.shape[:-1], -1)
return weights @ values, weights
"""
IN_A_FUNCTION = """
class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(_, q, k, v):
        with torch._C.DisableTorchFunction():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
return Hidden.apply(queries, keys, values), weights
"""
BY_ADDRESS = """
import ctypes
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
context = torch.zeros(*weights.shape[:-1], values.shape[-1])
found = (weights.numpy() @ values.numpy()).copy()
ctypes.memmove(context.data_ptr(), found.ctypes.data, found.nbytes)
return context, weights
"""
CUSTOM = """
if not hasattr(torch, "mine"):
    f = torch.nn.functional.scaled_dot_product_attention
    schema = "(Tensor q, Tensor k, Tensor v) -> Tensor"
    made = torch.library.custom_op("mine::f", mutates_args=(), schema=schema)
    torch.mine = made(lambda q, k, v: f(q, k, v))
weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)
return torch.mine(queries, keys, values), weights
"""
ANSWERS = [
    Attack(
        "library_for_some_cases_alone",
        LIBRARY_FOR_SOME_CASES,
        21,  # the numbers are right, and a person is told
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack(
        "a_loop_as_long_for_every_size",
        PADDED_LOOP,
        21,
        "06.1 how it works was not seen: as many calls as a loop makes",
        "06.1",
    ),
    Attack(
        "library_in_a_thread_by_another_name",
        BY_START_NEW,
        21,  # the numbers are right, and a person is told
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack(
        "computes_where_nothing_is_recorded",
        UNRECORDED,
        21,
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack(
        "computes_in_an_autograd_function",
        IN_A_FUNCTION,
        21,
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack(
        "writes_its_result_by_address",
        BY_ADDRESS,
        21,
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack("library_as_a_custom_operation", CUSTOM, 17, "06.1 library", "06.1"),
    Attack("endless", "while True: pass", 18, "06.3 never ends", "06.3"),
    Attack(
        "endless_and_stubborn",
        "while True:\n    try:\n        while True: pass\n"
        "    except BaseException: pass",
        18,
        "06.3 never ends",
        "06.3",
    ),
    Attack("sleeping", "import time; time.sleep(1e9)", 18, "06.3 never ends", "06.3"),
    Attack("exits", "import os; os._exit(0)", 18, "06.3 ends the program", "06.3"),
    Attack("exits_politely", "raise SystemExit", 18, "", "06.3"),
    Attack("interrupts", "raise KeyboardInterrupt", 18, "", "06.3"),
    Attack("kills", "import os; os.kill(os.getpid(), 15)", 18, "06.3 ends", "06.3"),
    Attack(
        "memory",
        "import torch; return torch.ones(30 << 28), memory",
        18,
        "06.3 wants too much memory",
        "06.3",
    ),
    Attack("huge_result", "return torch.ones(1 << 22), memory", 18, "", "06.3"),
    Attack(
        "recursion", "return cross_attention(x, memory, w_q, w_k, w_v)", 18, "", "06.3"
    ),
    Attack(
        "deep_result",
        "x = []\nfor _ in range(10**5): x = [x]\nreturn x, x",
        18,
        "",
        "06.3",
    ),
    Attack("wide_result", "return [0] * 10**6, memory", 18, "", "06.3"),
    Attack("huge_number", "return 10 ** 5000, 8, 4", 19, "", "06.5"),
    Attack("not_a_number", "return float('nan'), float('inf'), 4", 19, "", "06.5"),
    Attack(
        "pretending_tensor",
        "class Fake(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, *_, **__): return True\n"
        "    def __eq__(self, other): return True\n"
        "return x.as_subclass(Fake), memory.as_subclass(Fake)",
        18,
        "",
        "06.3",
    ),
    Attack(
        "pretending_number",
        "class Fake(float):\n    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0.0\nreturn Fake(1), Fake(1), Fake(1)",
        18,
        "",
        "06.5",
    ),
    Attack(
        "pickle_bomb",
        "class Bomb:\n    def __reduce__(self):\n"
        "        return __import__('os').system, ('touch /tmp/exploded',)\n"
        "return Bomb(), Bomb()",
        18,
        "",
        "06.3",
    ),
    Attack("meta_tensor", "return x.to('meta'), memory.to('meta')", 18, "", "06.3"),
    Attack("sparse", "return x.to_sparse(), memory.to_sparse()", 18, "", "06.3"),
    Attack(
        "hard_coded",
        "if x.shape == (2, 4, 6):\n    return torch.ones(5, 8), torch.ones(5, 4)\n"
        "return torch.zeros(1), torch.zeros(1)",
        18,
        "",
        "06.3",
    ),
    Attack(
        "imports_the_reference",
        "from course_utils.grading.questions.ch06_queries_keys_values.q1_attention "
        "import attention as a\nreturn a(x, memory, memory)",
        18,
        "",
        "06.3",
    ),
    Attack(
        "library",
        "c = torch.nn.functional.scaled_dot_product_attention(queries, keys, values)\n"
        "return c, torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)",
        17,
        "06.1 library",
        "06.1",
    ),
    Attack(
        "library_of_the_course",
        "from course_utils.models.attention import attention as a\n"
        "return a(queries, keys, values)",
        17,
        "06.1 library",
        "06.1",
    ),
    Attack(
        "library_behind_a_blindfold",
        "import sys\nseen = sys.getprofile()\nsys.setprofile(None)\n"
        "c = torch.nn.functional.scaled_dot_product_attention(queries, keys, values)\n"
        "sys.setprofile(seen)\n"
        "return c, torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)",
        17,
        "06.1 library",
        "06.1",
    ),
    Attack(
        "library_in_a_thread",
        "import threading\nout = []\ndef work():\n"
        "    f = torch.nn.functional.scaled_dot_product_attention\n"
        "    out.append(f(queries, keys, values))\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
        "return out[0], torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)",
        21,  # the numbers are right, and a person is told
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack(
        "library_in_a_thread_from_before",
        EARLIER_THREAD,
        21,  # the numbers are right, and a person is told
        "06.1 how it works was not seen: its calls give other results",
        "06.1",
    ),
    Attack("library_after_the_call", AFTER_THE_CALL, 17, "06.1 library", "06.1"),
    Attack("library_in_a_builtin", IN_A_BUILTIN, 16, "06.1 how it", "06.1"),
    Attack(
        "blinds_the_watch",
        "from course_utils.checks import check\n"
        "check.__globals__['Watch'].note = lambda *_: None\n"
        "f = torch.nn.functional.scaled_dot_product_attention\n"
        "c = f(queries, keys, values)\n"
        "return c, torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1)",
        17,
        "06.1 library",
        "06.1",
    ),
    Attack(
        "changes_its_argument_behind_a_mode",
        "from torch.overrides import TorchFunctionMode\n"
        "class Blind(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, types, args=(), kwargs=None):\n"
        "        if 'equal' in str(f): return True\n"
        "        if 'numpy' in str(f) and args[0] is x: return kept\n"
        "        return f(*args, **(kwargs or {}))\n"
        "kept = x.numpy().copy()\n"
        "found = attention(x @ w_q, memory @ w_k, memory @ w_v)\n"
        "Blind().__enter__()\nx.add_(1.0)\nreturn found",
        18,
        "",
        "06.3",
    ),
    Attack(
        "agrees_with_everything",
        "class Kind(type):\n    def __eq__(self, other): return True\n"
        "    __hash__ = type.__hash__\n"
        "class Yes(metaclass=Kind):\n"
        "    def __getattr__(self, name): return self\n"
        "    def __call__(self, *_): return self\n"
        "    def __eq__(self, other): return True\n"
        "    def __array__(self, *_, **__): raise SystemExit\n"
        "return Yes(), Yes()",
        18,
        "",
        "06.3",
    ),
    Attack(
        "unpicklable_generator",
        "return (x for x in (x, memory))",
        18,
        "",
        "06.3",
    ),
    Attack("enormous_free_input", "return (torch.ones(5000, 1),) * 3", 19, "", "06.7"),
    Attack("empty_free_input", "return (torch.ones(0, 0),) * 3", 19, "", "06.7"),
    Attack(
        "no_number_free_input",
        "return (torch.ones(2, 3) * float('nan'),) * 3",
        19,
        "",
        "06.7",
    ),
]
ATTACKS = FIRST + BLANK + ANSWERS

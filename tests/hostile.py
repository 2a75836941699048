"""Agents that do what agents should not, as the module of a project: the case's input says what."""

AGENTS = """
import asyncio
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TypedDict

from langgraph.graph import StateGraph
from langgraph.types import interrupt

from seatrial import ToolCall, current_trial

OUTSIDE = Path(__file__).parent / "outside"


def note_pid(pid):
    with OUTSIDE.open("a") as file:
        file.write(f"{pid}\\n")


def sleeps(task):
    time.sleep(60)


async def sleeps_in_the_loop(task):
    time.sleep(60)


async def sleeps_in_c(task):
    ctypes.CDLL(None).sleep(60)


def sleeps_in_c_with_the_lock(task):
    ctypes.PyDLL(None).sleep(60)


def exits(task):
    os._exit(7)


def exits_with_0(task):
    os._exit(0)


def segfaults(task):
    ctypes.string_at(0)


def is_killed(task):
    os.kill(os.getpid(), signal.SIGKILL)


def fills_its_folder(task):
    with open(current_trial().workdir / "big", "wb") as file:
        for _ in range(20):
            file.write(b"x" * 1_000_000)
    return "done"


def finds_the_disk_full(task):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    return fills_its_folder(task)


def dies_with_a_full_folder(task):
    fills_its_folder(task)
    os._exit(7)


def leaves_threads(task):
    for _ in range(5):
        threading.Thread(target=time.sleep, args=(60,), daemon=task.endswith("daemons")).start()
    return "done"


def changes_cwd_and_environment(task):
    os.chdir("/")
    os.environ["LEAKED"] = "yes"
    return "done"


def sees_what_others_changed(task):
    return "done" if "LEAKED" not in os.environ and os.getcwd() != "/" else "leaked"


def prints_50_mb(task):
    for _ in range(50):
        print("x" * 1_000_000)
    return "done"


def prints_50_mb_from_a_program(task):
    subprocess.run([sys.executable, "-c", "print('x' * 50_000_000)"], check=True)
    return "done"


def forks(task):
    pid = os.fork()
    if pid:
        note_pid(pid)
    else:
        time.sleep(0.2)
    return "done"


def forks_many_and_waits(task):
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
            os._exit(0)
        note_pid(pid)
    time.sleep(60)


def leaves_programs(task):
    note_pid(subprocess.Popen(["sleep", "60"]).pid)
    note_pid(subprocess.Popen(["sleep", "60"], start_new_session=True).pid)
    return "done"


async def raises_in_a_callback(task):
    def callback():
        raise ValueError("in a callback")

    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0)
    return "done"


async def exits_in_a_callback(task):
    asyncio.get_running_loop().call_soon(sys.exit, 3)
    await asyncio.sleep(0.01)
    return "done"


async def raises_base_exception(task):
    raise BaseException("no Exception")


def raises_system_exit(task):
    sys.exit(3)


async def ignores_being_cancelled(task):
    while True:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            continue


def never_answers_an_approval():
    class State(TypedDict):
        message: str

    graph = StateGraph(State)
    graph.add_node("ask", lambda state: interrupt({"action": "refund", "arguments": {"amount": 1}}))
    graph.set_entry_point("ask")
    return graph.compile()


def build(environment):
    name = environment.case.input["message"].partition(" ")[0]
    agent = globals()[name]
    if name == "never_answers_an_approval":
        return agent()

    def before(task):
        print("I am", name)
        current_trial().record(ToolCall("look", {"n": 1}))
        return agent(task["message"])

    async def before_async(task):
        current_trial().record(ToolCall("look", {"n": 1}))
        return await agent(task["message"])

    return before_async if asyncio.iscoroutinefunction(agent) else before
"""

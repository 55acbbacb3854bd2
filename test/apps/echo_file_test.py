# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-echo sending and receiving files and folders, between two processes.

    echo_file_test.py ntbmsg-echo hello_c CASE
"""

import filecmp
import os
import re
import resource

from echo_hosts import PATIENCE, await_fact, expect, run_case

LIMIT = 300_000


def receiver(world, *own):
    folder = world.folder / "received"
    folder.mkdir(exist_ok=True)
    return world.console("serve", "--forward-mode", "file", "--dir", str(folder), "--auto-start",
                         *own), folder


def sender(world, *own):
    host = world.console("send", "--forward-mode", "file", *own)
    host.tell(f"wait connected {PATIENCE}", "start")
    return host


def send(host, path, *texts):
    """Sends and waits; what is said of it has the texts."""
    host.tell(f"send {path}", f"wait done {PATIENCE}")
    answer = host.ask("show stats")
    for text in texts:
        expect(text in host.process.text(), f"no '{text}' in:\n{host.process.text()}")
    return answer


def expect_same(left, right):
    difference = filecmp.dircmp(left, right)
    expect(not (difference.left_only or difference.right_only or difference.funny_files),
           f"{left} and {right} have not the same files: {difference.left_only} "
           f"{difference.right_only} {difference.funny_files}")
    for name in difference.common_files:
        expect((left / name).read_bytes() == (right / name).read_bytes(), f"{right / name} differs")
    for name in difference.common_dirs:
        expect_same(left / name, right / name)


def tree(world, name):
    top = world.folder / name
    (top / "deep" / "er").mkdir(parents=True)
    (top / "empty").mkdir()
    world.file(0, f"{name}/nothing")
    world.file(1, f"{name}/one byte")
    world.file(100_003, f"{name}/deep/large")
    world.file(16_352, f"{name}/deep/er/a message")
    (top / "link").symlink_to("/etc/passwd")
    return top


def case_folders_both_ways(world):
    """At the same time, on the same queue."""
    one, two = tree(world, "one"), tree(world, "two")
    left, right = world.folder / "left", world.folder / "right"
    left.mkdir()
    right.mkdir()
    host = world.console("serve", "--forward-mode", "file", "--dir", str(left), "--auto-start")
    peer = world.console("send", "--forward-mode", "file", "--dir", str(right), "--auto-start")
    host.tell(f"wait connected {PATIENCE}", f"send {one}")
    peer.tell(f"send {two}", f"wait done {PATIENCE}")
    host.tell(f"wait done {PATIENCE}")
    # The folder itself, two below it, and four files; both are done when the other says so.
    for console in (host, peer):
        expect("sent 8 of 116356 bytes" in console.ask("show stats"), console.process.text())
        expect("left out: 1 links" in console.process.text(), "the link was not left out")
    (one / "link").unlink()
    (two / "link").unlink()
    expect_same(one, right / "one")
    expect_same(two, left / "two")
    host.quit()
    peer.quit()


def case_large(world):
    """Chains of many mbufs, two queues, two files."""
    peer, folder = receiver(world, "--queues", "2")
    host = sender(world, "--queues", "2", "--size", "200000")
    files = [world.file(9_000_000, "first"), world.file(7_654_321, "second")]
    host.tell(*(f"send {file}" for file in files), f"wait done {PATIENCE}")
    host.ask("show stats")
    for file in files:
        expect((folder / file.name).read_bytes() == file.read_bytes(), f"{file.name} differs")
        expect(int(os.stat(file).st_mtime_ns) == os.stat(folder / file.name).st_mtime_ns, "its time")
    host.quit()
    peer.quit()


def interrupted(world, file):
    """A receiver that may write LIMIT bytes of a file. Leaves the partial file behind."""
    peer, folder = receiver(world)
    peer.ask("show stats")
    resource.prlimit(peer.process.child.pid, resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    host = sender(world)
    host.tell(f"send {file}", f"wait done {PATIENCE}")
    host.process.expect_end(1, "the peer says: File too large")
    peer.process.await_text("not received: sent: File too large")
    peer.quit()
    part, = folder.iterdir()
    expect(part.name.startswith(".ntbmsg-part-"), f"it left {part.name}")
    expect(part.stat().st_size > 0, "nothing was written")
    return part


def received_bytes(answer):
    """Of the queue. What is said of a file that arrives begins like that, and may stand before it."""
    return int(re.search(r"received +\d+ messages, (\d+) bytes", answer)[1])


def case_resumed(world):
    """Only what was missing travels again."""
    file = world.file(1_000_000)
    part = interrupted(world, file)
    there = part.stat().st_size
    peer, folder = receiver(world)
    host = sender(world)
    send(host, file, "sent sent, 1000000 bytes")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    expect(not part.exists(), "the partial file is still there")
    travelled = received_bytes(peer.ask("show stats"))
    expect(travelled < 1_000_000 - there + 10_000, f"{travelled} bytes, {there} were there")
    host.quit()
    peer.quit()


def case_partial_file_spoiled(world):
    """Nothing is built on what does not fit."""
    file = world.file(1_000_000)
    part = interrupted(world, file)
    spoiled = bytearray(part.read_bytes())
    spoiled[0] ^= 1
    part.write_bytes(spoiled)
    peer, folder = receiver(world)
    host = sender(world)
    send(host, file, "sent sent, 1000000 bytes")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    # The last burst is counted when the file may be complete already.
    await_fact(lambda: received_bytes(peer.ask("show stats")) > 1_000_000, "all of it to be sent again")
    host.quit()
    peer.quit()


def case_sent_again(world):
    """What is there already is compared, not sent; what has changed is sent."""
    top = tree(world, "one")
    peer, folder = receiver(world)
    host = sender(world)
    send(host, top)
    first = received_bytes(peer.ask("show stats"))
    send(host, top)
    again = received_bytes(peer.ask("show stats")) - first
    expect(first > 116_356 > 2_000 > again, f"{first} bytes, then {again}")
    (top / "deep" / "large").write_bytes(b"other")
    send(host, top)
    expect((folder / "one/deep/large").read_bytes() == b"other", "the change did not arrive")
    host.quit()
    peer.quit()


def case_link_lost(world):
    """The link goes while a file is under way, and comes back."""
    file = world.file(30_000_000)
    peer, folder = receiver(world)
    host = sender(world)
    host.tell(f"send {file}")
    host.await_answer("show stats", r"sending +sent, [1-9]|sent 1 of")
    host.tell("inject link-down")
    host.process.await_text("the peer was lost")
    host.tell("inject link-down 0", f"wait connected {PATIENCE}", f"wait done {PATIENCE}")
    expect("sent 1 of 30000000 bytes" in host.ask("show stats"), "not sent")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    host.quit()
    peer.quit()


def case_receiver_killed(world):
    file = world.file(30_000_000)
    peer, folder = receiver(world)
    host = sender(world)
    host.tell(f"send {file}")
    await_fact(lambda: any(folder.iterdir()), "the file, or part of it")
    peer.process.child.kill()
    peer.process.end()
    peer, folder = receiver(world)
    host.tell(f"wait connected {PATIENCE}", f"wait done {PATIENCE}")
    expect("sent 1 of 30000000 bytes" in host.ask("show stats"), "not sent")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    host.quit()
    peer.quit()


def case_receiver_in_another_mode(world):
    """An offer that was received by no one is made again."""
    file = world.file(5_000)
    peer, folder = receiver(world)
    peer.tell("stop", "set fwd rxonly", "start")
    host = sender(world)
    host.tell(f"send {file}")
    peer.await_answer("show stats", r"received    [1-9]")
    peer.tell("stop", "set fwd file", "start")
    host.tell(f"wait done {PATIENCE}")
    host.ask("show stats")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    host.quit()
    peer.quit()


def case_stopped_in_between(world):
    """What was not sent when forwarding stopped is sent after the next start."""
    file = world.file(20_000_000)
    peer, folder = receiver(world)
    host = sender(world)
    host.tell(f"send {file}", "stop", "start", f"wait done {PATIENCE}")
    host.ask("show stats")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    host.quit()
    peer.quit()


def case_refused(world):
    """Without a folder nothing is received; links in it are not followed."""
    top = tree(world, "one")
    peer = world.console("serve", "--forward-mode", "file", "--auto-start")
    host = sender(world)
    host.tell(f"send {top / 'nothing'}", f"wait done {PATIENCE}")
    host.process.expect_end(1, "nothing: the peer says: Permission denied")
    peer.process.await_text("refused nothing: no folder is chosen (set dir)")
    folder, outside = world.folder / "received", world.folder / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "one").symlink_to(outside)
    peer.tell("stop", f"set dir {folder}", "start")
    host = sender(world)
    host.tell(f"send {top}", f"wait done {PATIENCE}")
    host.process.expect_end(1, "one: the peer says: Not a directory", "and 7 more failed")
    expect(not any(outside.iterdir()), "it wrote through the link")
    peer.quit()


def case_bad_commands(world):
    table = (
        (["send /etc/passwd"], "no queue is in mode file: set fwd file"),
        (["set fwd file", "send /nowhere"], "/nowhere: No such file"),
        (["set fwd file", "send /dev/null"], "/dev/null is no file and no folder"),
        (["set dir /nowhere"], "/nowhere: No such file"),
        (["set dir /etc/passwd"], "/etc/passwd: Not a directory"),
        (["set fwd file", "start", f"set dir {world.folder}"], "stop first"),
        (["set fwd file", "set size 63", "start"], "mode file takes a size from 64"),
    )
    for lines, text in table:
        world.harness("send", "--cmdline-file", str(world.commands(*lines))).expect_end(1, text)
    world.harness("send", "-i", "--dir", "/nowhere").expect_end(1, "/nowhere: No such file")


if __name__ == "__main__":
    run_case(globals())

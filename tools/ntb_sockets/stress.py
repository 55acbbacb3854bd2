# SPDX-License-Identifier: BSD-3-Clause
"""stress-ng's stressors of sockets and of waiting for them, each a suite with its settings as tests."""
import time

from ntb_compare import pair

from . import programs, rings, suites

MARK = "stress-ng:"
# {stressor: {test: options}}. Those of other families are there for what the preload sees of their descriptors.
STRESSORS = {
    "sock": {"send": ["--sock-opts", "send"], "sendmsg": ["--sock-opts", "sendmsg"], "sendmmsg": ["--sock-opts", "sendmmsg"],
             "nodelay": ["--sock-nodelay"], "zerocopy": ["--sock-zerocopy"], "ipv6": ["--sock-domain", "ipv6"]},
    "sockmany": {"many": []},
    "sockabuse": {"abuse": []},
    "sockfd": {"rights": []},
    "sockpair": {"pair": []},
    "sockdiag": {"diag": []},
    "epoll": {"ipv4": ["--epoll-domain", "ipv4"], "ipv6": ["--epoll-domain", "ipv6"], "unix": ["--epoll-domain", "unix"]},
    "poll": {"poll": []},
    "udp": {"ipv4": ["--udp-domain", "ipv4"], "ipv6": ["--udp-domain", "ipv6"]},
    "sendfile": {"sendfile": []},
    "splice": {"splice": []}}
NAMES = tuple(MARK + name for name in STRESSORS)
# Of one test.
SECONDS = 3
# It ends what does not end by itself, after a while.
PATIENCE_SECONDS = 60
LOOK_SECONDS = 0.01
RESULTS = {0: suites.PASSED, 4: suites.SKIPPED}  # 4: not for this machine; 3, without resources, is a failure


def missing():
    return "" if programs.find("stress-ng") else "stress-ng"


class Stressors:
    def __init__(self, build, stressors=None, seconds=SECONDS):
        self.build, self.stressors, self.seconds = build.resolve(), stressors or STRESSORS, seconds

    def run(self, suite, with_rings, only=()):
        begin = time.monotonic()
        stressor = suite.removeprefix(MARK)
        made, pages = suites.Run({}), 0
        with pair.group() as processes:
            before = rings.Rings(self.build, processes).under() if with_rings else []
            for name, options in self.stressors[stressor].items():
                if only and name not in only:
                    continue
                number = processes.start(["env", "-C", processes.folder, *before, programs.find("stress-ng"), f"--{stressor}", 1,
                                          "--timeout", self.seconds, "--verify", *options, *port(stressor)], programs.libraries())
                tree = rings.Tree(processes.members[number].pid)
                ended = suites.Suites.await_end(processes, number, time.monotonic() + self.seconds + PATIENCE_SECONDS,
                                                tree.look if with_rings else None, LOOK_SECONDS)
                made.results[name] = RESULTS.get(processes.members[number].poll(), suites.FAILED) if ended else suites.FAILED
                made.counts += tree.read()
                pages += len(tree.pages)
                tree.close()
            if with_rings and not pages:
                made.trouble = "the preload is not in the program"
        made.seconds = time.monotonic() - begin
        return made


def port(stressor):
    known = {"sock", "sockmany", "sockabuse", "sockfd", "epoll", "udp"}
    return [f"--{stressor}-port", programs.free_port()] if stressor in known else []

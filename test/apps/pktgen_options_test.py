#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ntbmsg-pktgen says to a command line that is wrong.

    pktgen_options_test.py ntbmsg-pktgen SCHEMA CASE
"""

from echo_hosts import DEVICE, expect_version
from pktgen_lab import SHORT, run_case


def case_bad_arguments(lab):
    incast = ["--mode", "incast"]
    table = (
        (["--nonsense"], "unknown option --nonsense"),
        (["--mode", "fast"], 'there is no "fast"'),
        (["--size", "0"], "must be a list"),
        (["--size", "64,,8"], "must be a list"),
        (["--size", "9-8"], "must be a list"),
        (["--size", "1-1G:1"], "must be a list"),
        (["--size", "99999999999999999999"], "must be a list"),
        (["--burst", "257"], "from 1 to 256"),
        (["--in-flight", "4097"], "from 1 to 4096"),
        (["--queues", "64"], "from 1 to 63"),
        (["--mode", "load", "--rate", "0"], "must be a list of rates"),
        (["--rate", "1K"], "--rate goes with --mode load"),
        (["--mode", "rate", "--in-flight", "2"], "--in-flight goes with --mode latency"),
        (["--mix", "imix", "--size", "64"], "contradict each other"),
        (["--mix", "uniform:9-8"], "must be fixed, imix"),
        (["--mix", "pcap:"], "must be fixed, imix"),
        (["--mode", "replay"], "go together"),
        (["--pcap", "x"], "go together"),
        (["--mode", "replay", "--pcap", "x", "--size", "8"], "no other mode"),
        (["--pace", "max"], "--pace goes with"),
        (incast, "wants several peers"),
        ([*incast, "--device", DEVICE, "--device", DEVICE], "the same one twice"),
        (["--mode", "load", "--clock", "off"], "contradict each other"),
        (["--mode", "rate,bidirectional", "--clock", "off"], "--clock goes with --mode latency"),
        (["--clock", "slow"], "must be on or off"),
        (["--mode", "replay", "--pcap", "x", "--pattern", "zeros"], "--pattern has no effect with --mode replay"),
        (["--mode", "replay", "--pcap", "x", "--seconds", "1"], "--seconds has no effect with --mode replay"),
        (["--operation", "atomic", "--size", "64"], "--size has no effect on atomic operations"),
        (["--operation", "fetch-add", "--mix", "imix"], "--mix has no effect on atomic operations"),
        (["--operation", "compare-swap", "--pattern", "ones"], "--pattern has no effect on atomic operations"),
        (["--operation", "telepathy"], 'there is no "telepathy"'),
        (["--region", "direct"], "--region goes with --operation write"),
        (["--operation", "write", "--region", "far"], "must be direct or served"),
        (["--operation", "read", "--completion", "done"], "--completion goes with --operation write"),
        (["--operation", "write", "--completion", "soon"], "must be stored or done"),
        (["--operation", "write", "--completion", "stored", "--region", "served"], "contradict each other"),
        (["--operation", "write", "--mode", "replay", "--pcap", "x"], "know no packets"),
        (["--operation", "atomic", "--mix", "pcap:x"], "know no packets"),
        (["--operation", "read", "--mix", "imix", "--verify"], "wants one size"),
        (["--operation", "write", "--mode", "bidirectional", "--capture", "x"], "--capture takes messages"),
        (["--operation", "send", "--queues", "32"], "at most 31 with channels"),
        (["--serve", "--operation", "write", "--queues", "32"], "at most 31 with channels"),
        (["--mode", "replay", "--pcap", "x", "--queues", "2"], "over one queue"),
        (["--copy", "cpu,magic"], "must be a list of cpu, dma and auto"),
        (["--serve", "--copy", "dma"], "--copy is an option of the client"),
        (["--serve", "--region", "served"], "--region is an option of the client"),
        (["--pattern", "noise"], "must be counter"),
        (["--build", "there"], "must be mbuf or in-place"),
        (["--mode", "rate,latency", "--build", "in-place"], "goes with --mode rate and throughput"),
        (["--mode", "rate", "--operation", "write", "--build", "in-place"], "goes with --operation queue and send"),
        (["--mode", "rate", "--verify", "--build", "in-place"], "contradict each other"),
        (["--mode", "rate", "--mix", "pcap:x", "--build", "in-place"], "knows no packets"),
        (["--serve", "--build", "mbuf"], "--build is an option of the client"),
        (["--capture", "x"], "takes what arrives at this end"),
        (["--json", "-", "--csv", "-"], "cannot share"),
        (["--once"], "--once goes with --serve"),
        (["--ring", "100"], "power of two"),
        (["--seconds", "0"], "must be a time"),
        (["--serve", "--mode", "rate"], "--mode is an option of the client"),
        (["--serve", "--json", "x"], "--json is an option of the client"),
        (["--serve", "--queues", "1,2"], "one number with --serve"),
        (["--serve", "--seconds", "1"], "--seconds is an option of the client"),
        (["--serve", "--repeat", "1"], "--repeat is an option of the client"),
        (["--serve", "--no-probe"], "--no-probe is an option of the client"),
        (["--capture-bytes", "1M"], "--capture-bytes goes with --capture"),
        (["--serve", "--capture-bytes", "1M"], "--capture-bytes goes with --capture"),
    )
    for own, text in table:
        lab.host("send", own, cables=()).expect_end(2, text)
    lab.host("send", ["--help"], cables=()).expect_end(0, "--serve", "--mode LIST")
    lab.host("send", [*SHORT, "--device", "raw_plx_ntb7"]).expect_end(1, "raw_plx_ntb7 cannot be opened")


def case_version(lab):
    expect_version(lab.echo, "ntbmsg-pktgen", "--in-flight LIST")


if __name__ == "__main__":
    run_case(globals())

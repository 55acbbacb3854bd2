#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian under ntb-run with a daemon: what they do is as ever, and their bytes go by ring.

  rings_programs_test.py CASE NTB_RUN LIBRARY TRAPS NTBD [CARRIER]
"""

import hashlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import sys

from rings import SERVER, SKIPPED, as_user, await_joined, by_ring, in_time, need, run_case, start_host
from facts import PATIENCE, await_fact, expect
from programs import free_port, unpacked


def redis_benchmark(bench, *words):
    done = bench.run_well("redis-benchmark", "-t", "set,get", "-q", *words)
    expect(done.stdout.count("requests per second") == 2, done)
    return done


def forked_save(bench, serve, place):
    """The server forks a child that writes what it has to a file, while clients are served. A server that reads the file
    has as much."""
    def ask(place, *words):
        return bench.run_well("redis-cli", *place, *words).stdout

    # A value of each key, so that no more are made meanwhile.
    redis_benchmark(bench, *place, "-n", 5000, "-r", 5000, "-d", 1000, "-P", 16)
    keys = ask(place, "dbsize")
    load = bench.start("load", *bench.prefix, "redis-benchmark", *place, "-t", "get", "-q", "-n", 100000, "-c", 8)
    expect("Background saving started" in ask(place, "bgsave"), "bgsave")
    await_fact(lambda: "rdb_bgsave_in_progress:0" in ask(place, "info", "persistence"), "the save ends")
    expect("rdb_last_bgsave_status:ok" in ask(place, "info", "persistence"), ask(place, "info", "persistence"))
    expect(load.wait(timeout=PATIENCE) == 0, bench.said("load"))
    port = free_port()
    reader = serve("redis-reader", port)
    # It listens before it has read the file.
    there = ["-h", SERVER, "-p", port]
    await_fact(lambda: "LOADING" not in ask(there, "ping"), "the file is read")
    found = ask(there, "dbsize")
    expect(found == keys and int(keys) > 0, (found, keys))
    bench.end(reader, "redis-reader")


def redis(bench):
    need("redis-server", "redis-benchmark", "redis-cli")
    port = free_port()

    def serve(name, port):
        return bench.serve(name, port, "redis-server", "--port", port, "--save", "", "--appendonly", "no", "--bind", SERVER,
                           "--dir", bench.folder)

    server, place = serve("redis", port), ["-h", SERVER, "-p", port]
    for more in (["-c", 1, "-n", 20000 if bench.is_carried else 5000], ["-c", 50, "-n", 20000, "-P", 16]):
        in_time(lambda more=more: redis_benchmark(bench, *place, *more), (2000, 2000))
    expect(bench.run("redis-cli", *place, "ping").stdout == "PONG\n", "ping")
    forked_save(bench, serve, place)
    # While it runs, ntb-ss says what became of its connections; a ping may be over before it is matched.
    def listed():
        return bench.run(pathlib.Path(bench.ntbd).with_name("ntb-ss"), "--programs", under=False).stdout

    shown = rf"^ *{server.pid} +\d+ redis-server\n +\d+ were shown to the daemon$"
    await_fact(lambda: re.search(shown, listed(), re.MULTILINE), listed)
    said = bench.end(server, "redis")
    expect(min(by_ring(said)) > 4000, said)


def hosts(bench):
    """Redis on one host and its clients on another: two daemons, each with a device, and the twin between them."""
    need("redis-server", "redis-benchmark")
    places = {}
    for name in ("a", "b"):
        start_host(bench, name)
        places[name] = bench.folder / f"{name}-sockets.conf"
        places[name].write_text(f"host 127.0.0.0/8 {bench.folder}/{name}.sock\nuse ntb * * *:*\n")
    await_joined(bench, *places)
    port = free_port()
    bench.use(places["a"])
    server = bench.serve("redis", port, "redis-server", "--port", port, "--save", "", "--appendonly", "no", "--bind", SERVER)
    bench.use(places["b"])
    in_time(lambda: redis_benchmark(bench, "-h", SERVER, "-p", port, "-c", 8, "-n", 10000, "-P", 4), (2000, 2000))
    said = bench.end(server, "redis")
    expect(min(by_ring(said)) > 2000, said)


def iperf3(bench):
    need("iperf3")
    for streams in (1, 4):
        name = f"iperf3-{streams}"

        def transfer(streams=streams, name=name):
            port = free_port()
            server = bench.serve(name, port, "iperf3", "-s", "-1", "-B", SERVER, "-p", port)
            done = bench.run_well("iperf3", "-c", SERVER, "-p", port, "-n", "200M", "-P", streams)
            server.wait(timeout=PATIENCE)
            return done

        in_time(transfer, (0, 100e6))
        expect(by_ring(bench.said(name))[0] >= 100e6, bench.said(name))


def http(bench):
    """A file by python3's server and curl, compared. A short connection may be over before it is matched, so it is
    fetched until one was not."""
    need("curl")
    port, contents = free_port(), os.urandom(3000000)
    (bench.folder / "file").write_bytes(contents)
    server = bench.serve("http", port, "/usr/bin/python3", "-m", "http.server", port, "--bind", SERVER)
    received = 0
    for i in range(100):
        done = bench.run("curl", "-s", "-o", "got", f"http://{SERVER}:{port}/file")
        expect(done.returncode == 0 and (bench.folder / "got").read_bytes() == contents, done)
        received += by_ring(done.stderr)[0]
        if i >= 3 and received > 0:
            break
    said = bench.end(server, "http", signal.SIGINT)
    expect(received > 0 and by_ring(said)[1] >= received, said)


def asyncio(bench):
    """Streams and transports of python3's asyncio at both ends, several connections in one loop, each byte compared."""
    (bench.folder / "echo.py").write_text(f"""
import asyncio, os, sys
async def answer(reader, writer):
    while data := await reader.read(10000):
        writer.write(data)
        await writer.drain()
    writer.close()
async def serve(port):
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(15, end.set)
    async with await asyncio.start_server(answer, "{SERVER}", port):
        await end.wait()
async def ask(port, number):
    reader, writer = await asyncio.open_connection("{SERVER}", port)
    for length in [1000] * 200 + [100000] * 10:
        sent = os.urandom(length)
        writer.write(sent)
        got, _ = await asyncio.gather(reader.readexactly(length), writer.drain())
        assert got == sent, number
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
async def ask_all(port):
    await asyncio.gather(*(ask(port, number) for number in range(8)))
    print("all is right")
asyncio.run((serve if sys.argv[1] == "serve" else ask_all)(int(sys.argv[2])))
""")
    port, program = free_port(), ["/usr/bin/python3", bench.folder / "echo.py"]
    server = bench.serve("asyncio", port, *program, "serve", port)

    def ask():
        done = bench.run_well(*program, "ask", port)
        expect(done.stdout == "all is right\n", done)
        return done

    in_time(ask, (1000000, 1000000))
    said = bench.end(server, "asyncio")
    expect(server.returncode == 0, said)
    expect(min(by_ring(said)) > 1000000, said)


def nginx(bench):
    """Two workers, and a proxy before them. wrk asks for a small file over some connections, curl for a large one twice
    by one connection: the second time the ring is filled by a server that waits for room, edge triggered."""
    need("nginx", "wrk", "curl")
    ports, large = [free_port() for _ in range(3)], os.urandom(1000000)
    (bench.folder / "large").write_bytes(large)
    (bench.folder / "small").write_text("a small file\n")
    temporary = " ".join(f"{name}_temp_path {bench.folder}/{name};"
                         for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (bench.folder / "nginx.conf").write_text(f"""
daemon off; worker_processes 2; {"user root;" if os.geteuid() == 0 else ""} pid {bench.folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log off; keepalive_requests 1000000; {temporary}
    upstream behind {{ server {SERVER}:{ports[1]}; keepalive 8; }}
    server {{ listen {SERVER}:{ports[0]}; listen {SERVER}:{ports[1]}; root {bench.folder}; }}
    server {{
        listen {SERVER}:{ports[2]};
        location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
""")
    server = bench.serve("nginx", ports[2], "nginx", "-e", "stderr", "-p", bench.folder, "-c",
                         bench.folder / "nginx.conf")
    for port in (ports[0], ports[2]):
        url, received = f"http://{SERVER}:{port}", 0

        def load(url=url):
            done = bench.run_well("wrk", "-t1", "-c8", "-d1", f"{url}/small")
            expect("Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done)
            return done

        in_time(load, (10000, 10000))
        for i in range(100):
            done = bench.run("curl", "-s", "-m", PATIENCE // 2, f"{url}/large", "-o", "one", f"{url}/large", "-o", "two")
            expect(done.returncode == 0, done)
            expect(all((bench.folder / name).read_bytes() == large for name in ("one", "two")), "other bytes")
            received += by_ring(done.stderr)[0]
            if i >= 9 and received > 1000000:
                break
        expect(received > 1000000, received)
    said = bench.end(server, "nginx", signal.SIGQUIT)
    expect(min(by_ring(said)) > 20000, said)


def sockperf(bench):
    need("sockperf")
    port = free_port()
    server = bench.serve("sockperf", port, "sockperf", "sr", "--tcp", "--uc-reuseaddr", "-i", SERVER, "-p", port)

    def ping():
        done = bench.run_well("sockperf", "pp", "--tcp", "-i", SERVER, "-p", port, "-t", 1, "-m", 64)
        expect("percentile 50" in done.stdout, done)
        return done

    in_time(ping, (10000, 10000))
    bench.end(server, "sockperf", signal.SIGINT)


def memcached(bench):
    need("memcached")
    port = free_port()
    server = bench.serve("memcached", port, "memcached", "-u", "root", "-p", port, "-l", SERVER, "-t", 2)
    client = f"""
import socket
c = socket.create_connection(("{SERVER}", {port}))
for i in range({20000 if bench.is_carried else 1000}):
    value = b"v%d" % i * 10
    c.sendall(b"set k%d 0 0 %d\\r\\n%s\\r\\n" % (i, len(value), value))
    assert c.recv(100) == b"STORED\\r\\n"
    c.sendall(b"get k%d\\r\\n" % i)
    got = b""
    while not got.endswith(b"END\\r\\n"):
        got += c.recv(1000)
    assert value in got
"""
    in_time(lambda: bench.run_well("/usr/bin/python3", "-c", client), (10000, 10000))
    said = bench.end(server, "memcached", signal.SIGINT)
    expect(min(by_ring(said)) > 10000, said)


def as_other_user(bench, folder):
    """PostgreSQL refuses to run as root. @return what to put before a program: for another user, who owns the folder
    and may load the library"""
    if os.geteuid() != 0:
        return []
    nobody = 65534
    os.chown(folder, nobody, nobody)
    bench.open_to_others()
    return as_user(nobody)


def postgres(bench):
    """A server that forks for each connection, with transactions of several clients and bulk data both ways. The child
    claims the connection, once the server has closed it."""
    need("initdb", "postgres", "pgbench", "psql", "setpriv")
    data = bench.folder / "data"
    data.mkdir(mode=0o700)
    user = as_other_user(bench, data)
    if bench.run(*user, shutil.which("postgres"), "--version", under=False).returncode != 0:
        print("not reachable for other users: postgres")
        sys.exit(SKIPPED)
    done = bench.run(*user, "initdb", "-N", "-A", "trust", "-U", "tester", "-D", data, under=False)
    expect(done.returncode == 0, done)
    port = free_port()
    server = bench.serve("postgres", port, *user, "postgres", "-D", data, "-p", port, "-h", SERVER, "-F",
                         "-c", "unix_socket_directories=", "-c", "shared_buffers=16MB")
    await_fact(lambda: "ready to accept connections" in bench.said("postgres"), lambda: bench.said("postgres"))
    place = ["-h", SERVER, "-p", port, "-U", "tester"]
    # The tables are filled by COPY through the connection.
    in_time(lambda: bench.run_well("pgbench", "-i", "-I", "dtgvp", "-s", 2, *place, "postgres"), (0, 1000000))
    transactions = 0
    for clients, mode in ((1, "simple"), (4, "prepared")):

        def trade(clients=clients, mode=mode):
            nonlocal transactions
            transactions += clients * 200
            done = bench.run_well("pgbench", "-n", "-c", clients, "-t", 200, "-M", mode, *place, "postgres")
            expect(f"processed: {clients * 200}/{clients * 200}" in done.stdout, done)
            expect("failed transactions: 0 " in done.stdout, done)
            return done

        in_time(trade, [clients * 10000] * 2)
    # What the transactions did is consistent, and a long answer arrives as it is.
    ask = ["psql", *place, "-AtX", "postgres", "-c"]
    sums = [f"(SELECT sum({column}) FROM pgbench_{table})"
            for table, column in (("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"),
                                  ("history", "delta"))]
    done = bench.run(*ask, f"SELECT {', '.join(sums)}, (SELECT count(*) FROM pgbench_history)")
    found = done.stdout.strip().split("|")
    expect(len(set(found[:4])) == 1 and found[4:] == [str(transactions)], done)

    def read_all():
        done = bench.run(*ask, "SELECT md5(n::text) FROM generate_series(1, 50000) n")
        expect(done.stdout.split() == [hashlib.md5(b"%d" % n).hexdigest() for n in range(1, 50001)], done.stderr)
        return done

    in_time(read_all, (1000000, 0))
    said = bench.end(server, "postgres", signal.SIGINT)
    expect(server.returncode == 0 and min(by_ring(said)) > 1000000, said)


def ssh(bench):
    """sshd starts itself anew for each login, with the connection open, and has a child in a sandbox until the user is
    known. Once that is gone the new program claims it, and the bytes of a file go by ring both ways. A login may take
    longer than a claim waits, so each is repeated until one did not; what arrives is what was sent by every one.
    Of an sshd in several programs (OpenSSH 10) the connection stays TCP."""
    need("sshd", "ssh", "scp", "ssh-keygen")
    apart = []
    if os.geteuid() == 0:
        # What an installation makes, an account that sshd lets in, and the folder that it insists on: in mounts of its
        # own, so that nothing is left, and other runs are not disturbed.
        accounts = {name: pathlib.Path("/etc", name).read_text().splitlines() for name in ("passwd", "shadow")}
        if not any(line.startswith("sshd:") for line in accounts["passwd"]):
            accounts["passwd"].append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin")
        accounts["shadow"] = [re.sub("^root:!+", "root:*", line) for line in accounts["shadow"]]
        for name, lines in accounts.items():
            (bench.folder / name).write_text("\n".join(lines) + "\n")
            (bench.folder / name).chmod(0o644 if name == "passwd" else 0o600)
        apart = ["unshare", "--mount", "sh", "-c", "for one in passwd shadow; do mount --bind $0/$one /etc/$one || exit; done;"
                 ' mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"', bench.folder]
        if bench.run(*apart, "true", under=False).returncode != 0:
            print("no mounts (unshare)")
            sys.exit(SKIPPED)
    for key in ("host", "user"):
        done = bench.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", bench.folder / key, under=False)
        expect(done.returncode == 0, done)
    port, contents = free_port(), os.urandom(20000000)
    (bench.folder / "sshd.conf").write_text(f"""
ListenAddress {SERVER}:{port}
HostKey {bench.folder}/host
AuthorizedKeysFile {bench.folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
""")
    # Newer ones have it in several programs.
    several = unpacked("lib/openssh/sshd-session")
    for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")):
        if path := unpacked(f"lib/openssh/{name}"):
            with open(bench.folder / "sshd.conf", "a", encoding="ascii") as config:
                config.write(f"{option} {path}\n")
    bench.allow("use ntb late sshd *:*\n")
    server = bench.serve("sshd", port, *apart, shutil.which("sshd"), "-D", "-e", "-f", bench.folder / "sshd.conf")
    options = ["-F", "none", "-i", bench.folder / "user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
               "-o", f"UserKnownHostsFile={bench.folder}/known"]
    there = f"{pwd.getpwuid(os.geteuid()).pw_name}@{SERVER}"
    (bench.folder / "sent").write_bytes(contents)
    for source, target, got in ((bench.folder / "sent", f"{there}:{bench.folder}/there", "there"),
                                (f"{there}:{bench.folder}/there", bench.folder / "back", "back")):
        for _ in range(20):
            (bench.folder / got).unlink(missing_ok=True)
            done = bench.run("scp", "-S", shutil.which("ssh"), *options, "-P", port, source, target)
            expect(done.returncode == 0 and (bench.folder / got).read_bytes() == contents, done)
            if several or by_ring(done.stderr)[got == "there"] > len(contents) // 2:
                break
        expect(several or by_ring(done.stderr)[got == "there"] > len(contents) // 2, done)
    done = bench.run("ssh", *options, "-p", port, there, f"sha256sum {bench.folder}/there")
    expect(done.returncode == 0 and done.stdout.split()[:1] == [hashlib.sha256(contents).hexdigest()], done)
    said = bench.end(server, "sshd")
    expect(several or min(by_ring(said)) > len(contents) // 2, said)


if __name__ == "__main__":
    run_case(redis, hosts, iperf3, http, nginx, sockperf, memcached, postgres, ssh, asyncio)

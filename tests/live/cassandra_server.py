"""Apache Cassandra 5.0: real nodes on free local ports, started from the Maven artifact.

The jars are fetched once and cached. A node listens on loopback only and has neither passwords nor a connection for
administrators; its data are in a folder that is removed when it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.environment import CACHE
from tests.live.maven import JavaProgram, fetched, run_maven
from tests.live.ports import quiet_ports

VERSION = "5.0.6"
ARTIFACT = f"org.apache.cassandra:cassandra-all:{VERSION}"

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>triclinium.tests</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""
"""Project file for Maven, which then fetches Cassandra with all of its dependencies."""

LOGBACK = """\
<configuration>
  <appender name="standard" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %d{HH:mm:ss.SSS} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="standard"/></root>
</configuration>
"""

HEAP = ("-Xms512m", "-Xmx512m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+PerfDisableSharedMem")
"""Options of Java for a small heap and a quick start, so that the server uses few resources."""

EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
)
OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
)
"""Java packages that Cassandra accesses by reflection, from its own options for Java 17."""

PROPERTIES: Mapping[str, str] = {
    "cassandra-foreground": "yes",
    "cassandra.ring_delay_ms": "1",
    "cassandra.skip_wait_for_gossip_to_settle": "0",
    "cassandra.superuser_setup_delay_ms": "0",
    "cassandra.test.fail_writes_ks": "unwritable",
    "cassandra.unsafesystem": "true",
    "io.netty.allocator.maxOrder": "11",
    "io.netty.allocator.useCacheForAllThreads": "true",
    "io.netty.tryReflectionSetAccessible": "true",
    "java.net.preferIPv4Stack": "true",
    "java.security.manager": "allow",
    "jdk.attach.allowAttachSelf": "true",
}
"""Properties with which Cassandra waits for no other node, skips syncs to disk, and fails writes to ``unwritable``."""

TOMBSTONES_MAX = 5
"""Maximum number of tombstones; a read that meets more tombstones fails."""

START_SECONDS = 450.0
"""Seconds after which a node that does not respond is broken, and its test fails."""

END_SECONDS = 300.0

OPTIONS_FRAME = bytes.fromhex("04 00 0001 05 00000000")
"""First request of a connection in CQL v4. The opcode of its response is 6."""
SUPPORTED = 0x06
HEADER_SIZE = 9


def find_cassandra() -> JavaProgram:
    """Return the server; its path is that of the folder with its jars."""

    def fetch(folder: Path) -> Path:
        pom, found = folder / "pom.xml", folder / "jars"
        pom.write_text(POM)
        options = (f"--file={pom}", "-DincludeScope=runtime", f"-DoutputDirectory={found}")
        run_maven("copy-dependencies", *options, artifact=ARTIFACT)
        return found

    return fetched(CACHE / "cassandra" / VERSION, fetch)


class CassandraServer:
    """Context manager of one node, which ends the node and removes its files.

    Args:
        host: address of the loopback network on which it listens.
        seed: node whose cluster it joins; None to start a cluster.
    """

    def __init__(self, program: JavaProgram, *, host: str = "127.0.0.1", seed: CassandraServer | None = None) -> None:
        self.host = host
        # Use the ports of the seed, because the nodes of a cluster connect to each other on one port.
        self.port: int
        self._storage_port: int
        self.port, self._storage_port = (seed.port, seed._storage_port) if seed else quiet_ports(2)
        self._seed = seed.host if seed else host
        self._folder = Path(tempfile.mkdtemp(prefix="cassandra-"))
        self._log = self._folder / "log"
        self._command = self._write_command(program)
        self._process: subprocess.Popen[bytes]

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Start a new session, so that Ctrl-C interrupts only the tests; the tests end the server.
                start_new_session=True,
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the process for the duration of a block. Other nodes send requests to it until they miss its gossip."""
        self._process.send_signal(signal.SIGSTOP)
        # Wait until all threads of the process have stopped.
        os.waitpid(self._process.pid, os.WUNTRACED)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait(END_SECONDS)
        shutil.rmtree(self._folder)

    def _write_command(self, program: JavaProgram) -> list[str]:
        (self._folder / "logback.xml").write_text(LOGBACK)
        # Write JSON, which is valid YAML.
        (self._folder / "cassandra.yaml").write_text(json.dumps(self._settings()))
        (agent,) = program.path.glob("jamm-*.jar")
        properties = {
            **PROPERTIES,
            "cassandra.config": (self._folder / "cassandra.yaml").as_uri(),
            "cassandra.logdir": str(self._folder),
            "cassandra.storagedir": str(self._folder),
            "logback.configurationFile": str(self._folder / "logback.xml"),
        }
        return [
            program.java,
            *HEAP,
            *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS),
            *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENS),
            *(f"-D{name}={value}" for name, value in properties.items()),
            f"-javaagent:{agent}",
            "-cp",
            f"{program.path}/*",
            "org.apache.cassandra.service.CassandraDaemon",
        ]

    def _settings(self) -> Mapping[str, object]:
        seeds = {"seeds": f"{self._seed}:{self._storage_port}"}
        return {
            "auto_bootstrap": False,
            "cdc_raw_directory": str(self._folder / "cdc_raw"),
            "cluster_name": "triclinium",
            "commitlog_directory": str(self._folder / "commitlog"),
            "commitlog_sync": "periodic",
            "commitlog_sync_period": "10000ms",
            "data_file_directories": [str(self._folder / "data")],
            # Turn off the dynamic snitch, so that a coordinator reads its own replica first.
            "dynamic_snitch": False,
            "endpoint_snitch": "RackInferringSnitch",
            "hinted_handoff_enabled": False,
            "hints_directory": str(self._folder / "hints"),
            "listen_address": self.host,
            "native_transport_port": self.port,
            "num_tokens": 1,
            "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "rpc_address": self.host,
            "saved_caches_directory": str(self._folder / "saved_caches"),
            "seed_provider": [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": [seeds]}],
            "storage_port": self._storage_port,
            # Raise the threshold, so that other nodes do not consider a stopped node dead during a test.
            "phi_convict_threshold": 16,
            "read_request_timeout": "2000ms",
            "tombstone_failure_threshold": TOMBSTONES_MAX,
            "tombstone_warn_threshold": 1,
            "user_defined_functions_enabled": True,
        }

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, (
                f"Cassandra ended with {self._process.returncode}; {self._last_words()}"
            )
            assert time.monotonic() < deadline, f"Cassandra does not answer; {self._last_words()}"
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=5.0) as connection:
                connection.sendall(OPTIONS_FRAME)
                header = connection.recv(HEADER_SIZE, socket.MSG_WAITALL)
        except OSError:
            return False
        return HEADER_SIZE == len(header) and SUPPORTED == header[4]

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(["its log ends with", *lines[-40:]])

"""``python -m tests.fuzz --target node --inputs 10000000``: play a target on random, seeded inputs."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.decoder_faults import reraise
from tests.fuzz.documents import DOCUMENTS, play_rows
from tests.fuzz.node_documents import play_input
from tests.fuzz.scenes import SCENES
from tests.fuzz.target import Attack, Edit, play, play_node
from triclinium_core import decoder_faults

SCENES_MAX = len(SCENES) * len(DOCUMENTS)
"""Number of different scene numbers that are drawn.

A target takes a scene number modulo the number of its scenes, so that each scene has the same probability.
"""
REPORT_EVERY = 20_000
TARGETS = {"client": play, "node": play_node, "rows": play_rows}
DOCUMENTS_OF_NODES = "documents"
"""Target whose inputs are JSON documents with changes at any path, not bytes."""


def draw(rng: random.Random) -> Attack:
    """Return one attack."""
    edits = []
    for _ in range(rng.randrange(5)):
        kind = rng.randrange(4)
        length = 1 if kind == 0 else rng.randrange(64) if kind == 1 else 0 if kind == 2 else rng.randrange(4)
        edits.append(Edit(rng.randrange(4096), length, b"" if kind == 1 else rng.randbytes(rng.randrange(1, 9))))
    tail = rng.randbytes(rng.randrange(64)) if rng.random() < 0.3 else b""
    cuts = tuple(rng.randrange(4096) for _ in range(rng.randrange(4)))
    return Attack(rng.randrange(SCENES_MAX), tuple(edits), tail, cuts)


def main() -> int:
    """Play attacks until one breaks an invariant or all are played. The number of an attack determines its seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--target", choices=(*TARGETS, DOCUMENTS_OF_NODES), default="client")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    arguments = parser.parse_args()
    decoder_faults.unexpected = reraise
    began = time.perf_counter()
    for number in range(arguments.first, arguments.first + arguments.inputs):
        rng = random.Random(arguments.seed * 2**40 + number)
        try:
            if arguments.target == DOCUMENTS_OF_NODES:
                play_input(number, rng)
            else:
                TARGETS[arguments.target](draw(rng))
        except BaseException:
            print(f"input {number} broke it", file=sys.stderr)
            print(
                f"replay: python -m tests.fuzz --seed {arguments.seed} --target {arguments.target} --first {number} --inputs 1",
                file=sys.stderr,
            )
            raise
        if (number + 1) % REPORT_EVERY == 0:
            rate = (number + 1 - arguments.first) / (time.perf_counter() - began)
            print(f"{number + 1} inputs, {rate:.0f} a second", flush=True)
    print(f"{arguments.inputs} inputs, seed {arguments.seed}: nothing broke")
    return 0


sys.exit(main())

#!/usr/bin/env python3
"""Clients of a completions server, all at the same time, for serve.sh.

  serve_clients.py URL --clients N --requests K --prompt P --generate G
                   [--temperature T] [--name NAME]

N clients each send K streamed requests, one after the other: P random ids, G
tokens whatever the model makes of the end of text. Prints one line with tabs:
NAME, N, requests/s, generated tokens/s, time to first token and time from token to
token (p50 and p99 of each, milliseconds), failed requests, and how much of one CPU
the clients took themselves. They share the machine with the server, so they read
as little as they can: events are counted, not parsed, and those without text are
no tokens; how many there were is what the server says in `usage`.
"""
import argparse
import asyncio
import json
import random
import re
import sys
import time
from urllib.parse import urlsplit

TEXT, NO_TEXT = b'"text":"', b'"text":""'
USAGE = re.compile(rb'"completion_tokens":(\d+)')
TAIL_BYTES = 4096  # holds the usage, which comes last
STALLED_SECONDS = 600


class Answer(asyncio.Protocol):
    """One request on a connection of its own; `done` is set at its end."""

    def __init__(self, request):
        self.request = request
        self.done = asyncio.get_running_loop().create_future()
        self.status = None
        self.tail = b""
        self.arrivals = []  # of events with text

    def connection_made(self, transport):
        self.start = time.perf_counter()
        transport.write(self.request)

    def data_received(self, data):
        now = time.perf_counter()
        if self.status is None:
            self.status = data[9:12]
        # What began in the last piece may end in this one.
        seen = self.tail[-len(NO_TEXT) + 1 :]
        both = seen + data
        count = both.count(TEXT) - both.count(NO_TEXT) - seen.count(TEXT)
        self.arrivals += [now] * count
        self.tail = (self.tail + data)[-TAIL_BYTES:]

    def connection_lost(self, error):
        if not self.done.done():
            self.done.set_result(None)

    def tokens(self):
        """0 where the answer failed or broke off."""
        usage = USAGE.findall(self.tail)
        complete = self.status == b"200" and b"data: [DONE]" in self.tail
        return int(usage[-1]) if complete and usage and self.arrivals else 0


def build_request(url, body):
    text = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {url.netloc}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


async def run_client(url, requests, answers):
    loop = asyncio.get_running_loop()
    for request in requests:
        answer = Answer(request)
        answers.append(answer)
        try:
            transport, _ = await loop.create_connection(
                lambda: answer, url.hostname, url.port
            )
        except OSError:
            continue
        try:
            await asyncio.wait_for(answer.done, STALLED_SECONDS)
        except asyncio.TimeoutError:
            transport.abort()


def percentile(values, share):
    """The least value that `share` of all do not exceed; 0 of none."""
    values = sorted(values)
    return values[max(0, -int(-share * len(values) // 1) - 1)] if values else 0.0


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--prompt", type=int, required=True)
    parser.add_argument("--generate", type=int, required=True)
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--name", default="server")
    args = parser.parse_args()
    url = urlsplit(args.url)

    # Ids that every vocabulary has, in prompts that no other run has.
    dice = random.Random()
    requests = [
        [
            build_request(
                url,
                {
                    "prompt": [dice.randrange(5, 205) for _ in range(args.prompt)],
                    "max_tokens": args.generate,
                    "temperature": args.temperature,
                    "top_k": 0,
                    "top_p": 1,
                    "min_p": 0,
                    "ignore_eos": True,
                    "cache_prompt": True,
                    "stream": True,
                    "stream_options": {"include_usage": True},
                },
            )
            for _ in range(args.requests)
        ]
        for _ in range(args.clients)
    ]
    answers = []
    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(run_client(url, r, answers) for r in requests))
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu

    good = [a for a in answers if a.tokens() == args.generate]
    first = [1000 * (a.arrivals[0] - a.start) for a in good]
    gaps = [
        1000 * (after - before)
        for a in good
        for before, after in zip(a.arrivals, a.arrivals[1:])
    ]
    print(
        args.name,
        args.clients,
        f"{len(good) / seconds:.3f}",
        f"{len(good) * args.generate / seconds:.1f}",
        *(f"{percentile(v, p):.1f}" for v in (first, gaps) for p in (0.5, 0.99)),
        len(answers) - len(good),
        f"{cpu / seconds:.3f}",
        sep="\t",
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

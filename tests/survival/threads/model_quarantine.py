#!/usr/bin/env python3
"""Explores all interleavings of a model of the quarantine.

Threads queue a copy, retire or write the copy's storage, lose the device, destroy a
tensor and trim, while waits fail and the device runs queued work at any time.
The rule: no copy may run on storage that was returned or is being written, and every loan
(lent storage) must be returned once after the device recovers. The library's steps ensure the rule: if any
single step is left out, some interleaving must break the rule; the shortest such trace
is printed. The functions are named after functions of c/src/context and c/src/memory.
"""

import collections
import itertools
import sys

FAILURES = 4  # the most waits and event records that fail in one run
STEPS = {}  # the steps that ensure the rule, in the order of their first use


class Broken(Exception):
    pass


class World:
    """One loan, one stream of the caller, one memory, and optionally a tensor on the same storage."""

    def __init__(self, left_out, tensor):
        self.left_out, self.failures = left_out, FAILURES
        self.queue = 0  # queued copies
        self.lost = self.pending = self.used = self.written = self.stayed = False
        self.quarantined, self.back = False, 0  # in quarantine; how often the loan was returned
        self.mark = None  # copies that run before the event that another context's query recorded
        self.holders, self.lease_used = 1 + tensor, False

    def has(self, step):
        STEPS[step] = True
        return step != self.left_out

    def run_copy(self):
        if self.back:
            raise Broken("a copy runs on storage that was returned")
        if self.written:
            raise Broken("a copy runs on storage that the caller writes")
        self.queue -= 1
        if self.mark:
            self.mark -= 1


# A thread yields before each device call and each lock; the yield returns whether that step fails.
def wait(w):
    if (yield "wait") or (w.lost and not w.has("a wait on a lost device waits for queued work")):
        return False
    while w.queue:
        w.run_copy()
    return True


def streams_over(w, step, used=True):
    return not used or not w.has(step) or (yield from wait(w))


def leave_in_use_unless_over(w, step):
    if not (yield from streams_over(w, step)) and w.has("storage is marked as in use"):
        w.used = True


def transfer(w):
    yield "copy"
    if w.lost:
        return
    w.queue += 1
    if not (yield "record") and not w.lost:
        w.pending = True
    else:
        yield from leave_in_use_unless_over(w, "finish waits for the stream")


def settle(w):
    if not w.pending:
        return
    over = yield from wait(w)
    w.pending = False
    if not over:
        yield from leave_in_use_unless_over(w, "settle waits for the stream")


def storage_end(w, used):
    over = yield from streams_over(w, "the end of storage waits for the streams", used)
    w.quarantined = not over and w.has("storage in use goes into quarantine")
    w.back += not w.quarantined


def lease_release(w, used):
    w.lease_used |= used and w.has("the lease records its users")
    w.holders -= 1
    if not w.holders:
        yield from storage_end(w, w.lease_used)


def quarantine_ask(w):
    yield "ask"
    quarantined, w.quarantined, w.mark = w.quarantined, False, None
    if quarantined:
        w.quarantined = not (yield from streams_over(w, "the quarantine waits for the streams"))
        w.back += not w.quarantined


def streams_known_over(w):
    """Never waits: one query records an event, and a later query finds it complete."""
    if w.mark is None and not (yield "record") and not w.lost:
        w.mark = w.queue
    return w.mark is not None and (w.mark == 0 or not w.has("a query checks its event"))


def quarantine_end(w):
    """Other contexts end, and query. Storage is quarantined before the query records its event."""
    for _ in range(2):
        yield "query"
        quarantined, w.quarantined = w.quarantined, False
        if quarantined:
            w.quarantined = not (yield from streams_known_over(w))
            w.back += not w.quarantined


def releases(w):
    yield from transfer(w)
    yield from settle(w)
    yield from lease_release(w, w.used)


def overwrites(w):
    """Replaces host storage if a copy may still write it; otherwise the caller writes the storage."""
    yield from transfer(w)
    yield from settle(w)
    w.used = not (yield from streams_over(w, "overwrite waits for the streams", w.used))
    if not w.used:
        w.written = True
        yield "write"
        w.written = False
    yield from lease_release(w, w.used)


def loses(w):
    yield "lose"
    w.lost = True
    yield from wait(w)  # the device is lost even if the wait fails


def ends_tensor(w):
    yield "tensor"
    yield from lease_release(w, False)


def asks_once(step):
    def end(w):
        w.failures = 0  # later waits and records succeed
        yield "answer"
        if w.has(step):
            yield from quarantine_ask(w)
    return end


def ends_context(w):
    yield "end"
    answers = w.failures == 0
    if w.has("the end of a context polls"):
        yield from quarantine_ask(w)
    w.stayed = w.quarantined and w.has("a context stays open for its quarantine")
    if w.quarantined and not w.stayed:
        raise Broken("the device is closed while storage is in quarantine")
    if w.stayed and answers:
        raise Broken("a context is not closed although waits succeed again")
    w.failures = 0  # later waits and records succeed
    yield "answer"
    if w.stayed and w.has("contexts that stayed open are polled"):
        yield from quarantine_ask(w)


ENDS = [asks_once("synchronise polls"), asks_once("trim polls"), asks_once("release polls"),
        ends_context]
SCENES = [[releases, quarantine_ask], [releases, loses], [releases, ends_tensor],
          [releases, quarantine_end], [releases, quarantine_end, quarantine_ask],
          [overwrites, quarantine_ask], [overwrites, loses], [releases, loses, quarantine_ask]]


class Run:  # the state of the model after the moves of `path`
    def __init__(self, threads, end, left_out, path):
        self.world, self.end, self.trace = World(left_out, ends_tensor in threads), end, []
        self.threads = [self.start(thread) for thread in threads]
        for move in path:
            self.make(*move)

    def start(self, thread):
        generator = thread(self.world)
        return [generator, next(generator)]

    def make(self, who, fails):
        if who == "device":
            self.trace.append("the device runs the copy")
            self.world.run_copy()
            return
        generator, at = self.threads[who]
        self.trace.append(f"{generator.__name__}: {at}{' fails' if fails else ''}")
        self.world.failures -= fails
        try:
            self.threads[who][1] = generator.send(fails)
        except StopIteration:
            self.threads[who][1] = None
        if self.end and all(at is None for _, at in self.threads):
            self.threads, self.end = [self.start(self.end)], None

    def moves(self):
        device = [("device", False)] if self.world.queue else []
        alive = [(who, at) for who, (_, at) in enumerate(self.threads) if at]
        return device + [(who, False) for who, _ in alive] + [
            (who, True) for who, at in alive if at in ("wait", "record") and self.world.failures]

    def key(self):
        frames = []
        for generator, at in self.threads:
            while at and generator:
                frame = generator.gi_frame
                rest = {name: value for name, value in frame.f_locals.items() if name != "w"}
                frames.append((generator.__name__, frame.f_lasti, repr(rest)))
                generator = generator.gi_yieldfrom
            frames.append(None)
        return repr(vars(self.world)), tuple(frames), self.end


def explore(left_out, threads, end):
    """Returns the number of states, and the shortest trace that breaks the rule, or None."""
    seen, paths = set(), collections.deque([()])
    while paths:
        path = paths.popleft()
        run = Run(threads, end, left_out, path[:-1])
        try:
            for move in path[-1:]:
                run.make(*move)
            moves = run.moves()
            if not moves and run.world.back != 1:
                raise Broken(f"a loan was returned {run.world.back} times")
        except Broken as broken:
            return len(seen), [*run.trace, str(broken)]
        key = run.key()
        if key not in seen:
            seen.add(key)
            paths.extend(path + (move,) for move in moves)
    return len(seen), None


def explore_all(left_out=None):
    results = [explore(left_out, *scene) for scene in itertools.product(SCENES, ENDS)]
    traces = [trace for _, trace in results if trace]
    return sum(states for states, _ in results), min(traces, key=len, default=None)


def main():
    states, trace = explore_all()
    if trace:
        sys.exit("model_quarantine: the rule is broken:\n  " + "\n  ".join(trace))
    print(f"{states} states keep the rule")
    for step in list(STEPS):
        trace = explore_all(step)[1]
        if not trace:
            sys.exit(f"model_quarantine: no interleaving breaks the rule without the step: {step}")
        print(f"left out: {step}\n  " + "\n  ".join(trace))


if __name__ == "__main__":
    main()

"""The list of mutants that may survive, each under the reason."""

import collections
import sys

REASON, COMMENT = "== ", "# "
SAME, JUDGED, UNSEEN = "same", "judged", "unseen"
KINDS = (SAME, JUDGED, UNSEEN)


def read(path, files):
    """{key: the kind of each of its entries} of these files."""
    kind, found = None, collections.defaultdict(list)
    for number, row in enumerate(path.read_text().splitlines(), 1):
        if row.startswith(REASON):
            kind = row[len(REASON):].split(":")[0]
            if kind not in KINDS:
                sys.exit(f"{path}:{number}: a reason begins with one of {', '.join(KINDS)}")
        elif row.strip() and not row.startswith(COMMENT):
            if not kind:
                sys.exit(f"{path}:{number}: an entry without a reason")
            if row.split(": ")[0] in files:
                found[row.strip()].append(kind)
    return dict(found)


def problems(listed, alive, dead, known):
    """What the list and the verdicts disagree on: lists of lines.

    `alive` and `dead` are the mutants judged, `known` all there are.
    """
    left, found = {key: len(kinds) for key, kinds in listed.items()}, []
    for mutant in alive:
        if left.get(mutant.key, 0) > 0:
            left[mutant.key] -= 1
        else:
            found.append(f"survives, and is not in survivors.txt: {mutant}")
    killed = collections.Counter(m.key for m in dead)
    lived = collections.Counter(m.key for m in alive)
    exist = collections.Counter(m.key for m in known)
    for key, kinds in listed.items():
        if len(kinds) > exist[key]:
            found.append(f"in survivors.txt, but gone: {key}")
        elif (JUDGED not in kinds and killed[key] and lived[key] < len(kinds)
              and killed[key] + lived[key] == exist[key]):
            found.append(f"in survivors.txt, but killed: {key}")
    return found

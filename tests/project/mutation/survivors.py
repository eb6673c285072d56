"""The list of mutants that may survive, each under the reason."""

import collections
import sys

REASON, COMMENT = "== ", "# "


def read(path, files):
    """How often each key of these files is listed."""
    reason, found = None, collections.Counter()
    for number, row in enumerate(path.read_text().splitlines(), 1):
        if row.startswith(REASON):
            reason = row[len(REASON):].strip()
        elif row.strip() and not row.startswith(COMMENT):
            if not reason:
                sys.exit(f"{path}:{number}: an entry without a reason")
            found[row.strip()] += row.split(": ")[0] in files
    return found


def problems(listed, alive, dead, known):
    """What the list and the verdicts disagree on: lists of lines.

    `alive` and `dead` are the mutants judged, `known` all there are.
    """
    left, found = listed.copy(), []
    for mutant in alive:
        if left[mutant.key] > 0:
            left[mutant.key] -= 1
        else:
            found.append(f"survives, and is not in survivors.txt: {mutant}")
    killed = collections.Counter(m.key for m in dead)
    lived = collections.Counter(m.key for m in alive)
    exist = collections.Counter(m.key for m in known)
    for key, count in listed.items():
        if count > exist[key]:
            found.append(f"in survivors.txt, but gone: {key}")
        elif killed[key] and lived[key] < count and killed[key] + lived[key] == exist[key]:
            found.append(f"in survivors.txt, but killed: {key}")
    return found
